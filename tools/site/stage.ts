import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import { placed, projectPages, titleOf } from "./navigation.ts";
import { proseOnly, resolveLink, withLinks } from "./page-links.ts";

export const root = fileURLToPath(new URL("../../", import.meta.url));
export const pagesFolder = fileURLToPath(new URL("./pages/", import.meta.url));
const home = "tools/site/home.md";
const read = (path: string): string => readFileSync(join(root, path), "utf8");

/** The pages of docs, without extension. */
export function docsPages(): string[] {
  return readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".md"))
    .map((file) => file.replaceAll("\\", "/").replace(/\.md$/, ""))
    .sort();
}

/**
 * Writes the pages as VitePress reads them: the docs as they are, pages of the project, and each source file or folder
 * that a page links to. Only links change, and pictures, which follow the site's switch between light and dark.
 */
export function stagePages(): number {
  rmSync(pagesFolder, { recursive: true, force: true });
  const stage = new Stage();
  for (const page of docsPages()) stage.write(`docs/${page}.md`, read(`docs/${page}.md`));
  for (const path of Object.keys(projectPages)) stage.write(path, path === "LICENSE" ? licence() : read(path));
  stage.write(home, read(home));
  stage.writeSources();
  cpSync(join(root, "docs/images"), join(pagesFolder, "images"), { recursive: true });
  mkdirSync(join(pagesFolder, "public"), { recursive: true });
  cpSync(join(root, "dashboard/public/icon.svg"), join(pagesFolder, "public", "icon.svg"));
  const { version } = JSON.parse(read("package.json")) as { version: string };
  writeFileSync(join(pagesFolder, "site.json"), JSON.stringify({ sidebar: sidebar(), version }));
  return stage.written;
}

const licence = (): string => `# License\n\n\`\`\`text\n${read("LICENSE").trim()}\n\`\`\`\n`;

function sidebar(): object[] {
  const groups = placed(docsPages()).map(({ section, pages }) => ({
    text: section.title,
    items: pages.map((page) => ({ text: titleOf(read(`docs/${page}.md`)), link: `/${page}` })),
  }));
  const project = Object.entries(projectPages).map(([path, page]) => ({
    text: path === "LICENSE" ? "License" : titleOf(read(path)),
    link: `/${page.replace(/\.md$/, "")}`,
  }));
  return [...groups.filter(({ items }) => items.length > 0), { text: "Project", items: project }];
}

/** Where a file of the repository is on the site: a source file is plain text there, a folder a page that lists it. */
function placeOf(path: string): string {
  if (path in projectPages) return projectPages[path]!;
  if (path === "README.md" || path === home) return "index.md";
  if (path.startsWith("docs/")) return path.slice("docs/".length);
  return statSync(join(root, path)).isDirectory() ? `source/${path}/index.md` : `source/${path}.txt`;
}

class Stage {
  readonly #sources = new Set<string>();
  written = 0;

  write(path: string, text: string): void {
    const place = placeOf(path);
    const linked = withLinks(text, (target) => this.#link(path, place, target));
    this.#save(place, withPictures(withoutTags(linked)));
  }

  writeSources(): void {
    const done = new Set<string>();
    for (;;) {
      const next = [...this.#sources].filter((path) => !done.has(path));
      if (next.length === 0) return;
      for (const path of next) {
        done.add(path);
        if (statSync(join(root, path)).isDirectory()) this.#save(placeOf(path), this.#folderPage(path));
        else this.#save(`public/${placeOf(path)}`, read(path));
      }
    }
  }

  #link(page: string, place: string, target: string): string {
    if (target.startsWith("#")) return target;
    const { path, anchor } = resolveLink(page, target);
    const there = placeOf(path);
    // VitePress takes a bare name for a package.
    if (/\.(png|svg)$/.test(path)) return `./${posix.relative(posix.dirname(place), there)}`;
    if (there.startsWith("source/")) this.#sources.add(path);
    const relative = posix.relative(posix.dirname(place), there);
    return `${relative}${anchor && !there.startsWith("source/") ? `#${anchor}` : ""}`;
  }

  #folderPage(path: string): string {
    const front = "---\nsearch: false\noutline: false\nprev: false\nnext: false\n---\n\n";
    const entries = readdirSync(join(root, path), { withFileTypes: true }).filter(
      ({ name }) => !["node_modules", "dist", ".tape"].includes(name),
    );
    const items = entries.map((entry) => {
      const inner = `${path}/${entry.name}`;
      this.#sources.add(inner);
      return `- [${entry.name}${entry.isDirectory() ? "/" : ""}](${posix.relative(posix.dirname(placeOf(path)), placeOf(inner))})`;
    });
    return `${front}# ${path}/\n\n${items.join("\n")}\n`;
  }

  #save(place: string, text: string): void {
    const file = join(pagesFolder, place);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    this.written++;
  }
}

const isTag = /^<(?:\/?(?:picture|img|source|br|details|summary|sub|sup|kbd|a)\b|!--|https?:)/;

/** VitePress compiles pages as components: what is no HTML of ours must not become a tag or an expression. */
function withoutTags(text: string): string {
  const prose = proseOnly(text);
  return text.replace(/<|\{\{/g, (found, at: number) => {
    if (prose[at] !== found[0] || isTag.test(text.slice(at, at + 12))) return found;
    return found === "<" ? "&lt;" : "&#123;&#123;";
  });
}

const picture =
  /<picture><source media="\(prefers-color-scheme: dark\)" srcset="([^"]+)">\s*<img alt="([^"]*)" src="([^"]+)"><\/picture>/g;
const figure = /^!\[([^\]]*)\]\(([^)]+\.svg)\)$/gm;

/** Two images of which the style sheet shows one, and drawings as part of the page. */
function withPictures(text: string): string {
  return text
    .replace(picture, (_, dark: string, alt: string, light: string) =>
      [
        `<img class="only-light" alt="${alt}" src="${light}">`,
        `<img class="only-dark" alt="${alt}" src="${dark}">`,
      ].join(""),
    )
    .replace(figure, (image, alt: string, target: string) => {
      const drawing = read(`docs/${target.replace(/^(\.\.?\/)+/, "")}`);
      if (!drawing.includes("--ink:")) return image; // a chart, which brings its own ground
      const inline = drawing
        .replace(/<style>[\s\S]*?:root[\s\S]*?<\/style>\n?/, "")
        .replace(/<title>[\s\S]*?<\/title>\n?/, "")
        .replace("<svg ", `<svg role="img" aria-label="${alt.replaceAll('"', "&quot;")}" `);
      return `<div class="tape-figure" tabindex="0" role="group" aria-label="Figure">\n${inline.replace(/\n\s*\n/g, "\n").trim()}\n</div>`;
    });
}
