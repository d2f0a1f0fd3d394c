import { useQuery, useQueryClient } from "@tanstack/react-query";
import { createContext, type FormEvent, type ReactNode, useContext, useEffect, useState } from "react";
import { ApiError, call, type Identity, storedToken, storeToken } from "./api.ts";
import { followStore } from "./follow-store.ts";
import { Logo } from "./ui/logo.tsx";

const Session = createContext<Identity | undefined>(undefined);

export function useIdentity(): Identity {
  const person = useContext(Session);
  if (person === undefined) throw new Error("only within <SignedIn>");
  return person;
}

/** What the server would refuse is not offered. */
export function usePermissions(): { readonly start: boolean; readonly operate: boolean; readonly audit: boolean } {
  const { role } = useIdentity();
  const operate = role === "operator" || role === "admin";
  return { start: role !== "reader", operate, audit: operate };
}

/** Asks who we are; where the server wants a credential, asks the person for a token. */
export function SessionProvider({ children }: { readonly children: ReactNode }) {
  const client = useQueryClient();
  const who = useQuery({ queryKey: ["whoami"], queryFn: () => call("whoami"), retry: false, meta: { settled: true } });
  const name = who.data?.name;
  useEffect(() => {
    if (name === undefined) return;
    // A browser has six connections to a server: pages that nobody looks at must not hold them.
    let gone = new AbortController();
    const follow = (): void => {
      gone.abort();
      gone = new AbortController();
      if (document.visibilityState === "visible") followStore(client, gone.signal);
    };
    follow();
    document.addEventListener("visibilitychange", follow);
    return () => {
      document.removeEventListener("visibilitychange", follow);
      gone.abort();
    };
  }, [client, name]);
  if (who.data !== undefined) return <Session value={who.data}>{children}</Session>;
  if (who.isPending) return <main className="alone" aria-busy="true" />;
  const refused = who.error instanceof ApiError && who.error.status === 401;
  if (!refused) {
    return (
      <main className="alone">
        <div className="card narrow">
          <Logo />
          <h1>The server does not answer</h1>
          <p>{who.error.message}</p>
          <button type="button" onClick={() => void who.refetch()}>
            Try again
          </button>
        </div>
      </main>
    );
  }
  return <SignIn wrong={storedToken() !== null} again={() => void who.refetch()} />;
}

function SignIn({ wrong, again }: { readonly wrong: boolean; readonly again: () => void }) {
  const [token, setToken] = useState("");
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    storeToken(token.trim());
    again();
  };
  return (
    <main className="alone">
      <form className="card narrow" onSubmit={submit}>
        <Logo />
        <h1>Sign in</h1>
        <p className="muted">
          This server wants an API token. Whoever runs it makes one with <code>durable-tape token create</code>.
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
        {wrong && (
          <p role="alert" className="bad-text">
            The server knows no such token, or it has ended.
          </p>
        )}
        <button type="submit" className="primary">
          Sign in
        </button>
        <p className="muted small">Kept in this tab until it is closed.</p>
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
