import type { Module, Node } from "./syntax.ts";

/** A doc comment by its parts. */
export interface DocComment {
  /** Paragraphs before the first tag; the first sentence is the summary. */
  readonly text: string;
  readonly example: string | undefined;
  /** What an option is when it is left out. */
  readonly default: string | undefined;
  /** Errors: a code or a class, then when. */
  readonly throws: readonly string[];
}

const empty: DocComment = { text: "", example: undefined, default: undefined, throws: [] };

/** The doc comment that ends right before a node. */
export function docOf(module: Module, node: Pick<Node, "start">): DocComment {
  const found = module.comments.findLast(
    ({ end }) => end <= node.start && module.text.slice(end, node.start).trim() === "",
  );
  return found === undefined ? empty : parseDoc(found.text);
}

export function parseDoc(comment: string): DocComment {
  const lines = comment.split("\n").map((line) => line.replace(/^\s*\* ?/, "").trimEnd());
  const [text = "", ...tags] = lines.join("\n").split(/^\s*@(?=[a-z]+\b)/m);
  const tagged = (name: string): string[] =>
    tags.filter((tag) => new RegExp(`^${name}\\b`).test(tag)).map((tag) => tag.slice(name.length));
  const flow = (part: string): string => part.replace(/\s+/g, " ").trim();
  const [example] = tagged("example");
  const [fallback] = tagged("default");
  return {
    text: text
      .split(/\n\s*\n/)
      .map(flow)
      .filter(Boolean)
      .join("\n\n"),
    example: example?.replace(/^\n/, "").trimEnd().trimStart() || undefined,
    default: fallback === undefined ? undefined : flow(fallback),
    throws: tagged("throws").map(flow),
  };
}
