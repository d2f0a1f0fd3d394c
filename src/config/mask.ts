const secretKey = /pass|secret|token|key|credential/i;

/**
 * A store URL as it may be printed: whoever reads the log must not learn a password, be it the address's own, one with
 * letters that a URL should not hold, or one of a URL inside it. In doubt too much is hidden.
 */
export function maskUrl(url: string): string {
  const [, scheme = "", rest = url] = /^([a-z][\w+.-]*:\/\/)(.*)$/is.exec(url) ?? [];
  return `${scheme}${scheme === "" ? rest : maskUser(rest)}`.replaceAll(
    /([?&])([^=&#]+)=([^&#]*)/g,
    (_whole, mark: string, key: string, value: string) =>
      `${mark}${key}=${secretKey.test(key) ? "***" : maskNested(value)}`,
  );
}

function maskUser(rest: string): string {
  const authority = /^[^/?#]*/.exec(rest)![0];
  // A raw / ? or # in a password ends the authority too early; but after host:port an @ is no user's.
  const late = !authority.includes("@") && /^[^:/?#]*:(?!\d{1,5}(?:[/?#]|$))/.test(rest);
  const end = late ? rest.lastIndexOf("@") : authority.lastIndexOf("@");
  if (end < 0) return rest;
  const user = rest.slice(0, end);
  const name = user.split(":", 1)[0]!;
  return `${name}${user.includes(":") ? ":***" : ""}${rest.slice(end)}`;
}

/** A parameter may be a URL itself, as listen_url is. */
function maskNested(value: string): string {
  let text: string;
  try {
    text = decodeURIComponent(value);
  } catch {
    return "***";
  }
  if (!text.includes("://")) return value;
  const masked = maskUrl(text);
  return masked === text ? value : text === value ? masked : encodeURIComponent(masked).replaceAll("*", "%2A");
}
