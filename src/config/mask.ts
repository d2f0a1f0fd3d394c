const secretKey = /pass|secret|token|key|credential/i;

/** A store URL as it may be printed: whoever reads the log must not learn the password. */
export function maskUrl(url: string): string {
  return url
    .replace(/^([a-z][\w+.-]*:\/\/)([^/?#]*)@/i, (_whole, scheme: string, user: string) => {
      const name = user.split(":", 1)[0]!;
      return `${scheme}${name}${user.includes(":") ? ":***" : ""}@`;
    })
    .replaceAll(/([?&])([^=&#]+)=([^&#]*)/g, (whole, mark: string, key: string) =>
      secretKey.test(key) ? `${mark}${key}=***` : whole,
    );
}
