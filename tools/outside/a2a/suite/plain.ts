const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;

/** The same results of two servers are equal in this form: ids and times are theirs. */
export function comparable(value: unknown): unknown {
  const ids = new Map<string, string>();
  const named = (id: string): string => {
    if (!ids.has(id)) ids.set(id, `id-${ids.size + 1}`);
    return ids.get(id)!;
  };
  const plain = (one: unknown, key = ""): unknown => {
    if (typeof one === "string") {
      if (/timestamp$/i.test(key)) return "time";
      return key === "messageId" ? "message" : one.replace(uuid, named).replace(/127\.0\.0\.1:\d{2,5}/g, "host");
    }
    if (Array.isArray(one)) return one.map((item) => plain(item, key));
    if (typeof one !== "object" || one === null) return one;
    return Object.fromEntries(
      Object.entries(one)
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([k, v]) => [k, plain(v, k)]),
    );
  };
  return plain(value);
}
