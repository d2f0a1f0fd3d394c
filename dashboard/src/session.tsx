import { useQuery, useQueryClient } from "@tanstack/react-query";
import { createContext, type FormEvent, type ReactNode, useContext, useEffect, useState } from "react";
import { ApiError, type Identity, storedToken, storeToken } from "./api.ts";
import { followStore } from "./follow-store.ts";
import { whoami } from "./queries.ts";
import { Logo } from "./ui/logo.tsx";

const Session = createContext<Identity | undefined>(undefined);

export function useIdentity(): Identity {
  const identity = useContext(Session);
  if (identity === undefined) throw new Error("useIdentity needs a SessionProvider above it");
  return identity;
}

/** Actions that the server would reject are not offered. */
export function usePermissions(): Readonly<Record<"start" | "operate" | "audit" | "erase", boolean>> {
  const { role } = useIdentity();
  const operate = role === "operator" || role === "admin";
  return { start: role !== "reader", operate, audit: operate, erase: role === "admin" };
}

/** Identifies the user, and asks for an API token where the server requires one. */
export function SessionProvider({ children }: { readonly children: ReactNode }) {
  const client = useQueryClient();
  const identity = useQuery(whoami());
  const name = identity.data?.name;
  useEffect(() => {
    if (name === undefined) return;
    // A browser allows six connections per server: hidden tabs must not hold one.
    let controller = new AbortController();
    const follow = (): void => {
      controller.abort();
      controller = new AbortController();
      if (document.visibilityState === "visible") followStore(client, controller.signal);
    };
    follow();
    document.addEventListener("visibilitychange", follow);
    return () => {
      document.removeEventListener("visibilitychange", follow);
      controller.abort();
    };
  }, [client, name]);
  if (identity.data !== undefined) return <Session value={identity.data}>{children}</Session>;
  if (identity.isPending) return <main className="centred" aria-busy="true" />;
  const needsToken = identity.error instanceof ApiError && identity.error.status === 401;
  if (!needsToken) {
    return (
      <main className="centred">
        <div className="card narrow">
          <Logo />
          <h1>Server unreachable</h1>
          <p>{identity.error.message}</p>
          <button type="button" onClick={() => void identity.refetch()}>
            Try again
          </button>
        </div>
      </main>
    );
  }
  return <SignIn isRejected={storedToken() !== null} onToken={() => void identity.refetch()} />;
}

function SignIn({ isRejected, onToken }: { readonly isRejected: boolean; readonly onToken: () => void }) {
  const [token, setToken] = useState("");
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    storeToken(token.trim());
    onToken();
  };
  return (
    <main className="centred">
      <form className="card narrow" onSubmit={submit}>
        <Logo />
        <h1>Sign in</h1>
        <p className="muted">
          This server requires an API token. Ask an operator to create one with <code>durable-tape token create</code>.
        </p>
        <label>
          Token
          <input
            type="password"
            name="token"
            autoComplete="off"
            spellCheck={false}
            placeholder="id.secret"
            required
            value={token}
            onChange={(event) => setToken(event.target.value)}
          />
        </label>
        {isRejected && (
          <p role="alert" className="bad-text">
            This token is unknown, revoked or expired.
          </p>
        )}
        <button type="submit" className="primary">
          Sign in
        </button>
        <p className="muted small">Stored in this tab only, until you close it.</p>
      </form>
    </main>
  );
}

export function SignOut() {
  const client = useQueryClient();
  if (storedToken() === null) return null;
  return (
    <button
      type="button"
      className="quiet"
      onClick={() => {
        storeToken(null);
        client.clear();
        location.assign("/");
      }}
    >
      Sign out
    </button>
  );
}
