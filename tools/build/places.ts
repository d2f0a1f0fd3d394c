import { readdirSync, readFileSync } from "node:fs";
import { join, posix, relative, sep } from "node:path";
import type { Plugin } from "rolldown";

/** Every file of the bundle lies in dist itself, under the path of its module with dashes: `cli/main.ts`, `cli-main.js`. */
export const bundledName = (module: string): string => module.replaceAll("/", "-").replace(/\.ts$/, ".js");

/**
 * Sources find what lies beside them by `new URL("…", import.meta.url)`. A bundle has another place, so each of these is
 * written anew: SQL files become text, a module that is started as a process becomes an entry of its own, and a file or
 * a folder is found from dist. A use of import.meta.url in any other form cannot be followed, and ends the build.
 */
export function places(src: string): Plugin {
  return {
    name: "places",
    transform: {
      filter: { id: /\.ts$/, code: "import.meta.url" },
      handler(code, id) {
        const module = relative(src, id).split(sep).join("/");
        const placed = code
          .replace(/\bsqlFiles\(new URL\("([^"]+)", import\.meta\.url\)\)/g, (_, path: string) =>
            sqlText(join(id, "..", path)),
          )
          .replace(/\bnew URL\("([^"]+)", import\.meta\.url\)/g, (_, path: string) => {
            const target = posix.join(posix.dirname(module), path);
            if (!target.endsWith(".ts")) return `new URL("${target}", import.meta["url"])`;
            const fileName = bundledName(target);
            this.emitFile({ type: "chunk", id: join(src, target), fileName });
            return `new URL("${fileName}", import.meta["url"])`;
          });
        if (placed.includes("import.meta.url"))
          this.error(`${module} uses import.meta.url in a form that tools/build/places.ts does not know`);
        return placed;
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
