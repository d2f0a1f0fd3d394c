import { ApiError } from "../api.ts";

export function ErrorMessage({ error }: { readonly error: unknown }) {
  const apiError = error instanceof ApiError ? error : undefined;
  return (
    <div className="error-message" role="alert">
      <strong>{apiError?.code ?? "Unexpected error"}</strong>
      <p>{error instanceof Error ? error.message : String(error)}</p>
      {apiError !== undefined && <p>{apiError.next}</p>}
    </div>
  );
}
