/** A share of a whole, as a bar. */
export function Meter({
  share,
  tone,
  label,
}: {
  readonly share: number;
  readonly tone: string;
  readonly label: string;
}) {
  const percent = Math.round(Math.min(1, Math.max(0, share)) * 100);
  return (
    <span className={`meter ${tone}`} role="img" aria-label={`${label}: ${percent} %`}>
      <span style={{ width: `${percent}%` }} />
    </span>
  );
}
