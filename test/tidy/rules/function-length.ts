import type { SourceFile } from "../files.ts";
import { isNode, lineOf, type Node, nameOf, parse, walk } from "../syntax.ts";

/** Longer ones do more than one thing: split them by what they do. */
export const maxFunctionLines = 70;

/** Longer functions that are one table or one switch, with the reason. At most 12, so that the list stays one. */
export const longFunctions: Readonly<Record<string, string>> = {
  "src/model/projection.ts changesOf": "a switch: what each kind of record changes, in one place",
  "testkit/projection-tables.ts #perform": "a switch: each kind of change, interpreted once more",
  "testkit/conformance/workload.ts #actions": "a table of actions by name",
  "testkit/conformance/refusals.ts namedCalls": "a table: every call that takes a name",
  "testkit/conformance/refusals.ts an argument of the wrong shape is refused": "a table: every argument with a shape",
};

const functions = new Set(["FunctionDeclaration", "FunctionExpression", "ArrowFunctionExpression"]);

/**
 * Functions that are too long, and exceptions that no longer are. A function that registers test cases (its parameter has
 * `it`) is not counted: its cases are.
 */
export function functionLengths(files: SourceFile[], exceptions = longFunctions): string[] {
  const complaints: string[] = [];
  const used = new Set<string>();
  for (const file of files) {
    walk(parse(file), (node, parent) => {
      if (!functions.has(node.type) || registersCases(node)) return;
      const lines = file.text.slice(node.start, node.end).split("\n").length;
      if (lines <= maxFunctionLines) return;
      const name = `${file.path} ${calledIn(node, parent)}`;
      used.add(name);
      if (name in exceptions) return;
      complaints.push(
        `${file.path}:${lineOf(file, node)}: ${calledIn(node, parent)} has ${lines} lines, more than ${maxFunctionLines}: split it by what it does`,
      );
    });
  }
  for (const name of Object.keys(exceptions)) {
    if (!used.has(name)) complaints.push(`${name} is no longer long: remove it from function-length.ts`);
  }
  return complaints;
}

function registersCases({ params }: Node): boolean {
  const [first] = Array.isArray(params) ? params : [];
  if (!isNode(first) || first.type !== "ObjectPattern" || !Array.isArray(first.properties)) return false;
  return first.properties.some((property) => isNode(property) && nameOf(property.key) === "it");
}

/** The name of a function: its own, its variable's or its property's; of a test case, the title. */
function calledIn(node: Node, parent: Node | undefined): string {
  const own = nameOf(node.id) ?? keyOf(parent) ?? nameOf(parent?.id);
  if (own !== undefined) return own;
  const [title] = parent?.type === "CallExpression" && Array.isArray(parent.arguments) ? parent.arguments : [];
  return nameOf(title) ?? "an unnamed function";
}

function keyOf(parent: Node | undefined): string | undefined {
  const name = nameOf(parent?.key);
  return name !== undefined && isNode(parent?.key) && parent.key.type === "PrivateIdentifier" ? `#${name}` : name;
}
