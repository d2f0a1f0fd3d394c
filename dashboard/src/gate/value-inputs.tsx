import type { Field } from "./form-fields.ts";

export interface ValueInputsProps {
  readonly fields: readonly Field[];
  readonly texts: Readonly<Record<string, string>>;
  readonly onChange: (name: string, text: string) => void;
}

const idOf = ({ name }: Field): string => `value-${name}`;

/** The inputs of a form. The browser itself checks what is required, the bounds and the lengths. */
export function ValueInputs({ fields, texts, onChange }: ValueInputsProps) {
  return fields.map((field) => (
    <div key={field.name} className="form-field">
      <label htmlFor={idOf(field)}>
        {field.label}
        {field.required ? "" : " (optional)"}
      </label>
      <ValueInput {...{ field, text: texts[field.name] ?? "" }} onChange={(text) => onChange(field.name, text)} />
      {field.about !== undefined && <span className="muted small">{field.about}</span>}
    </div>
  ));
}

function ValueInput({
  field,
  text,
  onChange,
}: {
  readonly field: Field;
  readonly text: string;
  readonly onChange: (text: string) => void;
}) {
  const { kind, required, choices, schema } = field;
  const common = { id: idOf(field), required, value: text };
  if (kind === "choice") {
    return (
      <select {...common} onChange={(event) => onChange(event.target.value)}>
        <option value="">{required ? "choose" : "not given"}</option>
        {choices.map((choice, k) => (
          <option key={JSON.stringify(choice)} value={k}>
            {choice === true ? "yes" : choice === false ? "no" : String(choice)}
          </option>
        ))}
      </select>
    );
  }
  const { minimum, maximum, minLength, maxLength } = schema;
  if (kind === "text")
    return <input {...common} {...{ minLength, maxLength }} onChange={(event) => onChange(event.target.value)} />;
  return (
    <input
      {...common}
      type="number"
      step={kind === "integer" ? 1 : "any"}
      min={minimum}
      max={maximum}
      onChange={(event) => onChange(event.target.value)}
    />
  );
}
