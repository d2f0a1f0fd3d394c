import { hasSteering, visible } from "../../../src/base/text.ts";

/** Line breaks of preformatted text stay. */
const escaped = (text: string): string => text.split("\n").map(visible).join("\n");
const attributes = ["title", "aria-label", "alt", "placeholder"];
const skipped: ReadonlySet<string> = new Set(["TEXTAREA", "SCRIPT", "STYLE"]);

/**
 * Every screen shows names and values that come from outside. A bidirectional mark in one of them can reverse what an
 * approver reads, and an invisible character can make two names look equal. This one observer writes such characters
 * out as escapes as they enter the page, before anything is painted.
 */
export function escapeInvisible(root: Node): void {
  const escapeNode = (node: Node): void => {
    if (node.nodeType === Node.TEXT_NODE) {
      const text = node.nodeValue ?? "";
      if (hasSteering(text) && !skipped.has(node.parentNode?.nodeName ?? "")) {
        const safe = escaped(text);
        if (safe !== text) node.nodeValue = safe;
      }
      return;
    }
    if (node instanceof Element) for (const name of attributes) escapeAttribute(node, name);
    if (!skipped.has(node.nodeName)) for (const child of node.childNodes) escapeNode(child);
  };
  new MutationObserver((changes) => {
    for (const { type, target, addedNodes, attributeName } of changes) {
      if (type === "attributes" && target instanceof Element) escapeAttribute(target, attributeName!);
      else if (type === "characterData") escapeNode(target);
      else for (const node of addedNodes) escapeNode(node);
    }
  }).observe(root, {
    subtree: true,
    childList: true,
    characterData: true,
    attributes: true,
    attributeFilter: attributes,
  });
}

function escapeAttribute(element: Element, name: string): void {
  const text = element.getAttribute(name);
  if (text === null || !hasSteering(text)) return;
  const safe = escaped(text);
  if (safe !== text) element.setAttribute(name, safe);
}
