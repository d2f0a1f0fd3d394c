import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, posix, relative, sep } from "node:path";
import type { Plugin } from "rolldown";

/**
 * Every file of the bundle is directly in dist, named after the path of its module with dashes and without `src/`:
 * `src/cli/main.ts` becomes `cli-main.js`.
 */
export const bundledName = (module: string): string =>
  module
    .replace(/^src\//, "")
    .replaceAll("/", "-")
    .replace(/\.ts$/, ".js");

const place = /\bnew URL\("([^"]+)", import\.meta\.url\)/g;
const sqlFolder = new RegExp(`\\bsqlFiles\\(${place.source}\\)`, "g");

/**
 * Sources locate adjacent files by `new URL("…", import.meta.url)`. A bundle is in another folder, so each of these is
 * rewritten: SQL files become text, a module that is started as a process becomes an entry of its own, and files that are
 * published unchanged are located from dist. An expression in another form fails the build.
 */
export function places(src: string): Plugin {
  return {
    name: "places",
    transform: {
      filter: { id: /\.ts$/, code: "import.meta.url" },
      handler(code, id) {
        const module = relative(src, id).split(sep).join("/");
        if (code.replace(place, "").includes("import.meta.url")) {
          this.error(`${module} uses import.meta.url in a form that tools/build/places.ts does not support`);
        }
        const target = (path: string): string => {
          const found = posix.join(posix.dirname(module), path);
          if (!found.endsWith(".ts")) {
            if (!existsSync(join(src, found)) || found.startsWith("../")) return found;
            this.error(`${module} refers to ${path}, which is not published; read SQL with sqlFiles(new URL(…))`);
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

/** A Map, like the result of `sqlFiles`. The text is unchanged, because stores keep the checksums of their migrations. */
function sqlText(folder: string): string {
  const files = readdirSync(folder).filter((file) => file.endsWith(".sql"));
  if (files.length === 0) throw new Error(`no SQL files in ${folder}`);
  return `new Map(${JSON.stringify(files.sort().map((file) => [file, readFileSync(join(folder, file), "utf8")]))})`;
}
