import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitepress";

/** What `npm run docs` found in the docs: the sidebar, and the version. */
const { sidebar, version } = JSON.parse(readFileSync(new URL("../pages/site.json", import.meta.url), "utf8"));

// Imported when the configuration runs: its bundler does not know the settings of our compiler.
const { slug } = await import(new URL("../../reference/slug.ts", import.meta.url).href);

/** The empty corner of a table is no header: screen readers would announce it for every cell below. */
const emptyCorners = (md) =>
  md.core.ruler.push("empty-corners", ({ tokens }) => {
    for (const [at, { type }] of tokens.entries()) {
      if (type !== "th_open" || tokens[at + 1].content !== "") continue;
      tokens[at].tag = "td";
      tokens[at + 2].tag = "td";
    }
  });

export default defineConfig({
  title: "Tape",
  description: "Durable execution for agents and services whose side effects matter.",
  lang: "en",
  srcDir: "pages",
  outDir: fileURLToPath(new URL("../dist", import.meta.url)),
  cacheDir: fileURLToPath(new URL("../node_modules/.vitepress-cache", import.meta.url)),
  base: process.env.TAPE_DOCS_BASE ?? "/",
  head: [["link", { rel: "icon", type: "image/svg+xml", href: `${process.env.TAPE_DOCS_BASE ?? "/"}icon.svg` }]],
  // The anchors of code hosts, so that a link to a section works in both places.
  markdown: {
    config: emptyCorners,
    anchor: { slugify: slug },
    theme: { light: "github-light-high-contrast", dark: "github-dark-high-contrast" },
  },
  transformHtml: (html) => html.replace('<div class="VPContent is-home"', '<div role="main" class="VPContent is-home"'),
  vite: { build: { chunkSizeWarningLimit: 4_000 }, logLevel: "error" },
  themeConfig: {
    nav: [
      { text: "Start", link: "/quickstart" },
      { text: "Concepts", link: "/concepts" },
      { text: "API", link: "/api/index" },
      { text: "Operations", link: "/operating" },
      { text: "Reliability", link: "/reliability" },
      { text: `v${version}`, link: "/project/changelog" },
    ],
    sidebar,
    outline: { level: [2, 3] },
    search: { provider: "local", options: { detailedView: true } },
    footer: { message: "Apache-2.0" },
    docFooter: { prev: "Previous", next: "Next" },
    externalLinkIcon: true,
  },
});
