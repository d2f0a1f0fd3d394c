import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, posix, relative, sep } from "node:path";
import type { Plugin } from "rolldown";

/**
 * Every file of the bundle lies in dist itself, under the path of its module with dashes, without `src/`:
 * `src/cli/main.ts`, `cli-main.js`.
 */
export const bundledName = (module: string): string =>
  module
    .replace(/^src\//, "")
    .replaceAll("/", "-")
    .replace(/\.ts$/, ".js");

const place = /\bnew URL\("([^"]+)", import\.meta\.url\)/g;
const sqlFolder = new RegExp(`\\bsqlFiles\\(${place.source}\\)`, "g");

/**
 * Sources find what lies beside them by `new URL("…", import.meta.url)`. A bundle has another place, so each of these is
 * written anew: SQL files become text, a module that is started as a process becomes an entry of its own, and what is
 * published as it is gets found from dist. What cannot be followed ends the build.
 */
export function places(src: string): Plugin {
  return {
    name: "places",
    transform: {
      filter: { id: /\.ts$/, code: "import.meta.url" },
      handler(code, id) {
        const module = relative(src, id).split(sep).join("/");
        if (code.replace(place, "").includes("import.meta.url")) {
          this.error(`${module} uses import.meta.url in a form that tools/build/places.ts does not know`);
        }
        const target = (path: string): string => {
          const found = posix.join(posix.dirname(module), path);
          if (!found.endsWith(".ts")) {
            if (!existsSync(join(src, found)) || found.startsWith("../")) return found;
            this.error(`${module} looks for ${path}, which is not published; SQL is read by sqlFiles(new URL(…))`);
          }
          this.emitFile({ type: "chunk", id: join(src, found), fileName: bundledName(found) });
          return bundledName(found);
        };
        return code
          .replace(sqlFolder, (_, path: string) => sqlText(join(dirname(id), path)))
          .replace(place, (_, path: string) => `new URL("${target(path)}", import.meta.url)`);
      },
    },
  };
}

/** A Map, as `sqlFiles` returns it. The text stays as it is: stores keep the checksums of their migrations. */
function sqlText(folder: string): string {
  const files = readdirSync(folder).filter((file) => file.endsWith(".sql"));
  if (files.length === 0) throw new Error(`no SQL files in ${folder}`);
  return `new Map(${JSON.stringify(files.sort().map((file) => [file, readFileSync(join(folder, file), "utf8")]))})`;
}
