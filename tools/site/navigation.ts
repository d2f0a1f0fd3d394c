/** A group of the sidebar. Pages are files below docs, without their extension; `folder` adds all pages of a folder. */
export interface Section {
  readonly title: string;
  readonly pages?: readonly string[];
  readonly folder?: string;
}

/** Where each page of docs stands. A test refuses a page that is in no section, or in two. */
export const sections: readonly Section[] = [
  { title: "Start", pages: ["quickstart", "dev"] },
  {
    title: "Concepts",
    pages: [
      ...["concepts", "scopes", "queues", "talking", "objects", "streams", "builds", "endless", "connectors", "events"],
      ...["reactors", "leases", "singletons", "guarded-resources", "transactions", "journals"],
    ],
  },
  { title: "Guides", folder: "guides" },
  {
    title: "Agents",
    pages: ["agents", "ai", "openai-agents", "langgraph", "adk", "mastra", "mcp", "a2a", "world", "encryption"],
  },
  {
    title: "Operations",
    pages: [
      ...[
        "operating",
        "deployment",
        "stores",
        "failover",
        "shards",
        "upgrading",
        "retention",
        "server",
        "remote",
        "dashboard",
      ],
      ...["observability", "security", "brokers", "push", "serverless", "internet-scale"],
    ],
  },
  { title: "Reference", pages: ["cli", "configuration", "reference", "errors", "dependencies"] },
  { title: "Reliability", pages: ["reliability", "costs", "simulation", "planted-bugs", "chaos"] },
  { title: "Benchmarks", pages: ["benchmarks"] },
  { title: "Seeds", pages: ["seeds"] },
  { title: "API", folder: "api" },
];

/** Pages of the project itself: where they are in the repository, and on the site. */
export const projectPages: Readonly<Record<string, string>> = {
  "ARCHITECTURE.md": "project/architecture.md",
  "CONTRIBUTING.md": "project/contributing.md",
  "CHANGELOG.md": "project/changelog.md",
  "SECURITY.md": "project/security-policy.md",
  LICENSE: "project/license.md",
};

/** The pages of each section, of those that exist. In a folder the index comes first. */
export function placed(pages: readonly string[]): { readonly section: Section; readonly pages: readonly string[] }[] {
  const rank = (page: string): string => (page.endsWith("/index") ? "" : page);
  return sections.map((section) => {
    const inFolder = pages.filter((page) => section.folder !== undefined && page.startsWith(`${section.folder}/`));
    const named = (section.pages ?? []).filter((page) => pages.includes(page));
    return { section, pages: [...named, ...inFolder.sort((a, b) => (rank(a) < rank(b) ? -1 : 1))] };
  });
}

/** What is wrong with the navigation: pages without a place, with two, and places without a page. */
export function misplaced(pages: readonly string[]): string[] {
  const places = placed(pages).flatMap((one) => one.pages);
  const named = sections.flatMap((section) => section.pages ?? []);
  return [
    ...pages
      .filter((page) => places.filter((one) => one === page).length !== 1)
      .map((page) => `docs/${page}.md must be in exactly one section of tools/site/navigation.ts`),
    ...named
      .filter((page) => !pages.includes(page))
      .map((page) => `tools/site/navigation.ts names docs/${page}.md, which does not exist`),
  ];
}

/** The first heading of a page, without its marks. */
export const titleOf = (text: string): string => (/^# (.+)$/m.exec(text)?.[1] ?? "").replace(/`/g, "");
