import { useQuery } from "@tanstack/react-query";
import { Link, Outlet, useNavigate } from "@tanstack/react-router";
import { type FormEvent, useEffect, useState } from "react";
import { call } from "./api.ts";
import { SignOut, useMay, usePerson } from "./session.tsx";
import { applyTheme, type Theme, themeKept } from "./theme.ts";
import { useKeys } from "./ui/keys.ts";
import { Mark } from "./ui/mark.tsx";
import { setServerNow } from "./ui/now.ts";

const places = [
  ["/", "Overview"],
  ["/runs", "Runs"],
  ["/doubt", "Doubt"],
  ["/gates", "Gates"],
  ["/leases", "Leases"],
  ["/effects", "Effects"],
  ["/obligations", "Obligations"],
  ["/timers", "Timers"],
  ["/values", "Values"],
  ["/health", "Health"],
  ["/audit", "Audit"],
] as const;

export function Shell() {
  useKeys();
  const person = usePerson();
  const may = useMay();
  const figures = useQuery({ queryKey: ["overview"], queryFn: () => call("overview") });
  const now = figures.data?.now;
  useEffect(() => {
    if (now !== undefined) setServerNow(now);
  }, [now]);
  const counts: Partial<Record<string, number>> = {
    "/doubt": Math.max(figures.data?.doubts.count ?? 0, stuckIn(figures.data?.runs)),
    "/gates": figures.data?.gates.count ?? 0,
  };
  return (
    <div className="shell">
      <a className="skip" href="#content">
        To the content
      </a>
      <aside>
        <Link to="/" className="brand">
          <Mark />
          Tape
        </Link>
        <nav aria-label="Main">
          {places
            .filter(([to]) => to !== "/audit" || may.audit)
            .map(([to, name]) => (
              <Link key={to} to={to} activeOptions={{ exact: to === "/", includeSearch: false }}>
                {name}
                {(counts[to] ?? 0) > 0 && (
                  <span className="count">
                    {counts[to]}
                    <span className="unseen"> waiting</span>
                  </span>
                )}
              </Link>
            ))}
        </nav>
        <footer>
          <p className="muted small">
            {person.name} · {person.role}
            <br />
            {person.tenant} on {person.backend} · {person.version}
          </p>
          <ThemeSwitch />
          <SignOut />
        </footer>
      </aside>
      <div className="page">
        <Search />
        <main id="content">
          <Outlet />
        </main>
      </div>
    </div>
  );
}

function stuckIn(runs: readonly { readonly status: string; readonly count: number }[] | undefined): number {
  return runs?.find(({ status }) => status === "STUCK")?.count ?? 0;
}

function ThemeSwitch() {
  const [theme, setTheme] = useState(themeKept);
  return (
    <label className="theme small">
      Colours
      <select
        value={theme}
        onChange={(event) => {
          const chosen = event.target.value as Theme;
          setTheme(chosen);
          applyTheme(chosen);
        }}
      >
        <option value="system">as the system</option>
        <option value="light">light</option>
        <option value="dark">dark</option>
      </select>
    </label>
  );
}

/** A run by its id, or by what it did: `effect:business key`. */
function Search() {
  const go = useNavigate();
  const [text, setText] = useState("");
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    const wanted = text.trim();
    if (wanted === "") return;
    const cut = wanted.indexOf(":");
    const found =
      cut < 1
        ? undefined
        : await call("claims.get", {
            query: { scope: wanted.slice(0, cut), businessKey: wanted.slice(cut + 1) },
          }).catch(() => undefined);
    await go({ to: "/runs/$id", params: { id: found?.claim?.runId ?? wanted } });
    setText("");
    (document.activeElement as HTMLElement | null)?.blur();
  };
  return (
    <search className="search">
      <form onSubmit={(event) => void submit(event)}>
        <input
          type="search"
          aria-label="Find a run"
          placeholder="Find a run by its id, or effect:business key"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        <kbd>/</kbd>
      </form>
    </search>
  );
}
