/** What Prometheus and its linter ask of a text in its format, in words; nothing: it is fine. */
export function lint(text: string): string[] {
  const faults: string[] = [];
  const families = new Map<string, { help?: string; type?: string }>();
  const seen = new Set<string>();
  let last: string | undefined;
  if (!text.endsWith("\n")) faults.push("the last line does not end");
  for (const line of text.trimEnd().split("\n")) {
    const about = /^# (HELP|TYPE) ([a-z_:][a-z0-9_:]*) (.+)$/.exec(line);
    if (about !== null) {
      const [, what, name = "", rest = ""] = about;
      const family = families.get(name) ?? {};
      families.set(name, family);
      if (what === "HELP") family.help = rest;
      else family.type = rest;
      last = name;
      if (!name.startsWith("tape_")) faults.push(`${name} does not begin with tape_`);
      if (what === "TYPE" && (rest === "counter") !== name.endsWith("_total"))
        faults.push(`${name}: only counters end in _total`);
      if (/_(ms|millis|milliseconds|minutes|kb|kib|mb)(_|$)/.test(name)) faults.push(`${name} is not in a base unit`);
      if (what === "HELP" && !/^[A-Z1].*\.$/.test(rest)) faults.push(`${name}: its help is no sentence`);
      continue;
    }
    const sample = /^([a-z_:][a-z0-9_:]*)(\{(?:[^"}]|"(?:\\.|[^"\\])*")*\})? (\S+)$/.exec(line);
    if (sample === null) {
      faults.push(`not a sample: ${line}`);
      continue;
    }
    const [, name = "", labels = "", value] = sample;
    const family = families.has(name) ? name : name.replace(/_(bucket|sum|count)$/, "");
    const { help, type } = families.get(family) ?? {};
    if (help === undefined || type === undefined) faults.push(`${name} has no HELP or no TYPE`);
    if (family !== last) faults.push(`${name} stands apart from its family`);
    if (seen.has(name + labels)) faults.push(`${name}${labels} is there twice`);
    seen.add(name + labels);
    if (!Number.isFinite(Number(value))) faults.push(`${name}: ${value} is no number`);
    if (labels !== "" && !/^\{([a-z_]+="(\\.|[^"\\])*",?)+\}$/.test(labels))
      faults.push(`${name}: bad labels ${labels}`);
    if (type === "histogram" && !/_(bucket|sum|count)$/.test(name)) faults.push(`${name} is no part of a histogram`);
  }
  return [...new Set(faults)];
}

/** The value of one sample, named with its labels. */
export const figure = (text: string, sample: string): number =>
  Number(
    text
      .split("\n")
      .find((line) => line.startsWith(`${sample} `))
      ?.slice(sample.length + 1) ?? Number.NaN,
  );
