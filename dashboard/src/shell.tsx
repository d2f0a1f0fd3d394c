import { useQuery } from "@tanstack/react-query";
import { Link, Outlet, useNavigate } from "@tanstack/react-router";
import { type FormEvent, useEffect, useState } from "react";
import { call } from "./api.ts";
import { useAttention } from "./overview/needs-attention.tsx";
import { SignOut, useIdentity, usePermissions } from "./session.tsx";
import { applyTheme, storedTheme, type Theme } from "./theme.ts";
import { Logo } from "./ui/logo.tsx";
import { useKeys } from "./ui/use-keys.ts";
import { setServerNow } from "./ui/use-now.ts";

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
  ["/budgets", "Budgets"],
  ["/health", "Health"],
  ["/audit", "Audit"],
] as const;

export function Shell() {
  useKeys();
  const person = useIdentity();
  const may = usePermissions();
  const figures = useQuery({ queryKey: ["overview"], queryFn: () => call("overview") });
  const doubts = useAttention();
  const now = figures.data?.now;
  useEffect(() => {
    if (now !== undefined) setServerNow(now);
  }, [now]);
  const counts: Partial<Record<string, number>> = {
    "/doubt": doubts.effects.length + doubts.runs.length,
    "/gates": figures.data?.gates.count ?? 0,
  };
  return (
    <div className="shell">
      <a className="skip" href="#content">
        To the content
      </a>
      <aside>
        <Link to="/" className="brand">
          <Logo />
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

function ThemeSwitch() {
  const [theme, setTheme] = useState(storedTheme);
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

/** A run by its id or the beginning of it, or by what it did: `effect:business key`. */
function Search() {
  const go = useNavigate();
  const [text, setText] = useState("");
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    const wanted = text.trim();
    if (wanted === "") return;
    const id = await runNamed(wanted);
    if (id === undefined) await go({ to: "/runs", search: { prefix: wanted } });
    else await go({ to: "/runs/$id", params: { id } });
    setText("");
    (document.activeElement as HTMLElement | null)?.blur();
  };
  return (
    <search className="search">
      <form onSubmit={(event) => void submit(event)}>
        <input
          type="search"
          aria-label="Find a run"
          placeholder="A run's id, its beginning, or effect:business key"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        <kbd>/</kbd>
      </form>
    </search>
  );
}

/** The one run that is meant; undefined: several begin like this. Whoever means none is told so on the run's page. */
async function runNamed(wanted: string): Promise<string | undefined> {
  const cut = wanted.indexOf(":");
  const query = { scope: wanted.slice(0, cut), businessKey: wanted.slice(cut + 1) };
  const owner = cut < 1 ? undefined : await call("businessKeys.get", { query }).catch(() => undefined);
  if (owner?.claim !== undefined) return owner.claim.runId;
  const { runs } = await call("runs.list", { query: { prefix: wanted, limit: 2 } });
  if (runs.some(({ id }) => id === wanted)) return wanted;
  return runs.length > 1 ? undefined : (runs[0]?.id ?? wanted);
}
