import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join, posix } from "node:path";

const attribute = /\s(?:href|src)="([^"]*)"/g;
const decoded = (text: string): string => decodeURIComponent(text.replaceAll("&amp;", "&"));

/** Pages of a built site, from its folder. */
export function builtPages(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".html"));
}

/** Links of the built pages that lead nowhere: to no file, or to no anchor of a page. */
export function deadLinks(folder: string, base = "/"): { readonly checked: number; readonly dead: string[] } {
  const texts = new Map(builtPages(folder).map((page) => [page, readFileSync(join(folder, page), "utf8")]));
  const ids = new Map([...texts].map(([page, text]) => [page, idsIn(text)]));
  const dead: string[] = [];
  let checked = 0;
  for (const [page, text] of texts) {
    for (const [, target = ""] of text.matchAll(attribute)) {
      if (/^([a-z][a-z0-9+.-]*:|\/\/)/i.test(target)) continue;
      checked++;
      const [path = "", anchor = ""] = decoded(target).split("#");
      const file = path === "" ? page : fileOf(folder, page, path.split("?")[0]!, base);
      if (file === undefined) dead.push(`${page}: ${target} leads to no file`);
      else if (anchor !== "" && ids.get(file)?.has(anchor) === false)
        dead.push(`${page}: ${target} leads to no anchor`);
    }
  }
  return { checked, dead };
}

const idsIn = (text: string): Set<string> =>
  new Set([...text.matchAll(/\sid="([^"]*)"/g)].map(([, id]) => decoded(id!)));

function fileOf(folder: string, page: string, path: string, base: string): string | undefined {
  const from = path.startsWith("/") ? path.slice(base.length) : posix.join(posix.dirname(page), path);
  const candidates = [from, `${from}.html`, posix.join(from, "index.html")].map((one) => posix.normalize(one));
  return candidates.find((one) => existsSync(join(folder, one)) && statSync(join(folder, one)).isFile());
}
