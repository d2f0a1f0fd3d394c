/** Two reels and the tape between them. */
export function Logo() {
  return (
    <svg className="logo" viewBox="0 0 40 20" width="40" height="20" aria-hidden="true">
      <circle cx="9" cy="10" r="7" fill="none" stroke="currentColor" strokeWidth="2.4" />
      <circle cx="31" cy="10" r="7" fill="none" stroke="currentColor" strokeWidth="2.4" />
      <circle cx="9" cy="10" r="2" fill="currentColor" />
      <circle cx="31" cy="10" r="2" fill="currentColor" />
      <path d="M9 17h22" stroke="currentColor" strokeWidth="2.4" />
    </svg>
  );
}
