import { Link } from "@tanstack/react-router";
import { type ReactNode, useEffect, useRef } from "react";
import { Refusal } from "../api.ts";
import { ago, momentOf, pretty, typesOf } from "../format.ts";
import { useNow } from "./use-now.ts";

export function Screen({
  title,
  about,
  actions,
  children,
}: {
  readonly title: ReactNode;
  readonly about?: ReactNode;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}) {
  return (
    <>
      <header className="screen-head">
        <div>
          <h1>{title}</h1>
          {about !== undefined && <p className="muted">{about}</p>}
        </div>
        {actions !== undefined && <div className="actions">{actions}</div>}
      </header>
      {children}
    </>
  );
}

/** There is nothing, and what that means. */
export function Empty({ title, children }: { readonly title: string; readonly children?: ReactNode }) {
  return (
    <div className="empty">
      <p className="empty-title">{title}</p>
      {children !== undefined && <div className="muted">{children}</div>}
    </div>
  );
}

export function Failure({ error }: { readonly error: unknown }) {
  const refusal = error instanceof Refusal ? error : undefined;
  return (
    <div className="failure" role="alert">
      <strong>{refusal?.code ?? "Something went wrong"}</strong>
      <p>{error instanceof Error ? error.message : String(error)}</p>
      {refusal !== undefined && <p>{refusal.next}</p>}
    </div>
  );
}

interface Continued {
  readonly hasNextPage: boolean;
  readonly isFetchingNextPage: boolean;
  fetchNextPage(): unknown;
}

/** The rest of a list that is read page by page. */
export function More({ of: list }: { readonly of: Continued }) {
  if (!list.hasNextPage) return null;
  return (
    <p>
      <button type="button" disabled={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
        Show more
      </button>
    </p>
  );
}

/** What a query has to show: the wait, the refusal, or its answer. */
export function Answer<T>({
  of,
  children,
}: {
  readonly of: { readonly data: T | undefined; readonly error: unknown };
  readonly children: (data: T) => ReactNode;
}) {
  if (of.data !== undefined) return <>{children(of.data)}</>;
  if (of.error !== null && of.error !== undefined) return <Failure error={of.error} />;
  return <div className="loading" role="status" aria-label="Loading" />;
}

export function Json({ value, label }: { readonly value: unknown; readonly label: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <figure className="json" aria-label={label} tabIndex={0}>
      <pre>{pretty(value)}</pre>
      {typesOf(value) !== "" && <figcaption className="muted small">{typesOf(value)}</figcaption>}
    </figure>
  );
}

export function Ago({ at }: { readonly at: number }) {
  const now = useNow();
  return (
    <time dateTime={new Date(at).toISOString()} title={momentOf(at)}>
      {ago(at, now)}
    </time>
  );
}

export function RunLink({ id }: { readonly id: string }) {
  return (
    <Link to="/runs/$id" params={{ id }} className="mono" data-row>
      {id}
    </Link>
  );
}

/** A native dialog: the browser keeps the focus inside, and Escape closes it. */
export function Modal({
  title,
  side = false,
  onClose,
  children,
}: {
  readonly title: ReactNode;
  readonly side?: boolean;
  readonly onClose: () => void;
  readonly children: ReactNode;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const one = dialog.current;
    one?.showModal();
    return () => one?.close();
  }, []);
  return (
    <dialog ref={dialog} className={side ? "drawer" : "modal"} onClose={onClose} aria-labelledby="dialog-title">
      <header className="dialog-head">
        <h2 id="dialog-title">{title}</h2>
        <button type="button" className="quiet" onClick={onClose} aria-label="Close">
          ✕
        </button>
      </header>
      <div className="dialog-body">{children}</div>
    </dialog>
  );
}

export function Facts({ of }: { readonly of: readonly (readonly [string, ReactNode])[] }) {
  return (
    <dl className="facts">
      {of.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** How much of a whole is left or used. */
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
