const secretKey = /pass|secret|token|key|credential/i;

/** Whether the value of a parameter or variable of this name is probably a secret. */
export const namesSecret = (name: string): boolean => secretKey.test(name);

/**
 * A store URL without passwords, for printing. It hides the address's password, even one with characters that a URL must
 * not contain, and the passwords of URLs in its parameters. When unsure, it hides too much.
 */
export function maskUrl(url: string): string {
  if (url.startsWith("shards:")) return url.split(";").map(maskShard).join(";");
  const [, scheme = "", rest = url] = /^([a-z][\w+.-]*:\/\/)(.*)$/is.exec(url) ?? [];
  return `${scheme}${scheme === "" ? rest : maskUser(rest)}`.replaceAll(
    /([?&])([^=&#]+)=([^&#]*)/g,
    (_whole, mark: string, key: string, value: string) =>
      `${mark}${key}=${secretKey.test(key) ? "***" : maskNested(value)}`,
  );
}

/** One part of a list of shards, `NAME=URL`. */
function maskShard(part: string): string {
  const at = part.indexOf("=") + 1;
  return `${part.slice(0, at)}${maskUrl(part.slice(at))}`;
}

/** `host:port`, an optional path, and parameters, which alone may contain an @. */
const hostAndPort = /^[^:/?#@]*:\d{1,5}(\/[^?#@]*)?(\?([^=&#]+=[^&#]*(&|$))*)?(#.*)?$/;

function maskUser(rest: string): string {
  const authority = /^[^/?#]*/.exec(rest)![0];
  // A raw / ? or # in a password cuts the authority short. The last @ then ends the user, unless the text reads as
  // host:port. A password of digits followed by a slash looks like a port, so the whole text has to match.
  const cutShort = !authority.includes("@") && /^[^:/?#]*:/.test(rest) && !hostAndPort.test(rest);
  const end = cutShort ? rest.lastIndexOf("@") : authority.lastIndexOf("@");
  if (end < 0) return rest;
  const user = rest.slice(0, end);
  const name = user.split(":", 1)[0]!;
  return `${name}${user.includes(":") ? ":***" : ""}${rest.slice(end)}`;
}

/** A parameter may be a URL, such as listen_url. */
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
