import { prettyJson, typesOf } from "../format.ts";

export function Json({ value, label }: { readonly value: unknown; readonly label: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <figure className="json" aria-label={label} tabIndex={0}>
      <pre>{prettyJson(value)}</pre>
      {typesOf(value) !== "" && <figcaption className="muted small">{typesOf(value)}</figcaption>}
    </figure>
  );
}
