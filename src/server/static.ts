import { readFile, stat } from "node:fs/promises";
import type { Dashboard, PageFile } from "./dashboard-page.ts";

/** The built dashboard: beside the published code, or in a checkout where `npm run dashboard` puts it. */
const places = [new URL("../dashboard/", import.meta.url), new URL("../../dashboard/dist/", import.meta.url)];

const types: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
  json: "application/json",
};

/** No leading dot in a segment, and no way to leave the folder. */
const filePath = /^\/((?:[\w-]+\/)?[\w-][\w.-]*\.(\w+))$/;

/** Files of the folders, read again when they change: a checkout may build while the server runs. */
export function dashboardIn(...folders: readonly URL[]): Dashboard {
  const cached = new Map<string, { readonly at: number; readonly file: PageFile }>();
  return async (path) => {
    const [, name = "index.html", ending = "html"] = filePath.exec(path) ?? [];
    const type = types[ending];
    if (type === undefined || (path !== "/" && name === "index.html")) return undefined;
    for (const folder of folders) {
      const url = new URL(name, folder);
      const at = await stat(url).then(
        ({ mtimeMs }) => mtimeMs,
        () => undefined,
      );
      if (at === undefined) continue;
      const known = cached.get(url.href);
      if (known?.at === at) return known.file;
      const file = { type, body: await readFile(url), lasting: name.startsWith("assets/") };
      cached.set(url.href, { at, file });
      return file;
    }
    return undefined;
  };
}

export const builtDashboard: Dashboard = dashboardIn(...places);
