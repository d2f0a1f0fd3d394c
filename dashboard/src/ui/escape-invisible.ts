import { hasSteering, visible } from "../../../src/base/text.ts";

/** Line breaks of a text that is shown as it is written are its own. */
const shown = (text: string): string => text.split("\n").map(visible).join("\n");
const attributes = ["title", "aria-label", "alt", "placeholder"];
const untouched: ReadonlySet<string> = new Set(["TEXTAREA", "SCRIPT", "STYLE"]);

/**
 * Names and values of strangers stand on every screen. A bidirectional mark in one of them reverses what an approver
 * reads, an invisible letter makes two names look the same: here, the one place, such letters are written out as they
 * come into the page, before anything is painted.
 */
export function escapeInvisible(root: Node): void {
  const clean = (node: Node): void => {
    if (node.nodeType === Node.TEXT_NODE) {
      const text = node.nodeValue ?? "";
      if (hasSteering(text) && !untouched.has(node.parentNode?.nodeName ?? "")) {
        const safe = shown(text);
        if (safe !== text) node.nodeValue = safe;
      }
      return;
    }
    if (node instanceof Element) for (const name of attributes) cleanAttribute(node, name);
    if (!untouched.has(node.nodeName)) for (const child of node.childNodes) clean(child);
  };
  new MutationObserver((changes) => {
    for (const { type, target, addedNodes, attributeName } of changes) {
      if (type === "attributes" && target instanceof Element) cleanAttribute(target, attributeName!);
      else if (type === "characterData") clean(target);
      else for (const node of addedNodes) clean(node);
    }
  }).observe(root, {
    subtree: true,
    childList: true,
    characterData: true,
    attributes: true,
    attributeFilter: attributes,
  });
}

function cleanAttribute(element: Element, name: string): void {
  const text = element.getAttribute(name);
  if (text === null || !hasSteering(text)) return;
  const safe = shown(text);
  if (safe !== text) element.setAttribute(name, safe);
}
