// The parameters and columns of every statement. Written by `npm run schema`: change the SQL files instead.

/** Whole numbers: in PostgreSQL bigint. */
type Whole = number | bigint | null;
type Text = string | null;
type Truth = boolean | null;
/** SQLite has 0 and 1. */
type Flag = boolean | number;

/** Statements of both stores. */
export interface SharedStatements {
  agenda: {
    params: { allOf: Text; backlogs: Text; build: Text; holders: Text; limit: Whole; tenants: Text; queues: Text };
    row: { reactor: string | null; in_ms: number | null };
  };
  "audit.add": {
    params: { tenant: Text; n: Whole; moment: Whole; journal: Whole; subject: Text; body: Text; hash: Text };
    row: Record<never, never>;
  };
  "audit.all": {
    params: { before: Whole; limit: Whole };
    row: {
      id: number;
      tenant: string;
      n: number;
      at: number;
      journal: number;
      subject: string | null;
      body: string;
      hash: string;
    };
  };
  "audit.head": {
    params: { tenant: Text };
    row: { n: number; hash: string; at: number | null };
  };
  "audit.page": {
    params: { tenant: Text; before: Whole; limit: Whole };
    row: {
      id: number;
      tenant: string;
      n: number;
      at: number;
      journal: number;
      subject: string | null;
      body: string;
      hash: string;
    };
  };
  "audit.seal": {
    params: { hash: Text; tenant: Text };
    row: Record<never, never>;
  };
  "audit.subject": {
    params: { journal: Whole };
    row: { subject: string | null };
  };
  "blob.count": {
    params: { tenant: Text; bytes: Whole };
    row: Record<never, never>;
  };
  "blob.get": {
    params: { journal: Whole; blob: Text; n: Whole; tenant: Text };
    row: { chunks: number; body: string };
  };
  "blob.put": {
    params: {
      journal: Whole;
      blob: Text;
      n: Whole;
      chunks: Whole;
      bytes: Whole;
      counted: Truth;
      body: Text;
      begins: Whole;
    };
    row: Record<never, never>;
  };
  "blob.stored": {
    params: { journal: Whole; blob: Text };
    row: { stored: number | null; chunks: number | null; bytes: number | null };
  };
  "blob.weigh": {
    params: { journal: Whole; begins: Whole };
    row: { bytes: number | null };
  };
  "budget.charge": {
    params: { run: Whole; unit: Text; spent: Whole; tenant: Text; by: Whole; max: Whole; reserved: Whole };
    row: Record<never, never>;
  };
  "budget.create": {
    params: { run: Whole; unit: Text; cap: Whole };
    row: Record<never, never>;
  };
  "budget.list": {
    params: { run: Whole };
    row: { run: number; unit: string; cap: number; reserved: number; spent: number };
  };
  "budget.open": {
    params: { tenant: Text; limit: Whole };
    row: {
      run: number;
      unit: string;
      cap: number;
      reserved: number;
      spent: number;
      run_id: string;
      workflow: string;
      phase: string;
      lease_owner: string | null;
      lease_next_reactor: string | null;
      ended_at: number | null;
      slot: string | null;
    };
  };
  "budget.others": {
    params: { run: Whole; tenant: Text; by: Whole; unit: Text };
    row: { others: number | null };
  };
  "budget.reserve": {
    params: { run: Whole; unit: Text; amount: Whole; tenant: Text; by: Whole; max: Whole };
    row: Record<never, never>;
  };
  "build.count": {
    params: { tenant: Text };
    row: { n: number | null };
  };
  "build.current": {
    params: { current: Truth; tenant: Text; build: Text };
    row: { build: string };
  };
  "build.forget": {
    params: { tenant: Text; olderMs: Whole; limit: Whole };
    row: Record<never, never>;
  };
  "build.list": {
    params: { tenant: Text; build: Text; limit: Whole };
    row: { build: string; workflows: string; current: Flag; first_at: number; seen_at: number; live: number | null };
  };
  "build.live": {
    params: { tenant: Text; build: Text };
    row: { live: Flag | null };
  };
  "build.names": {
    params: { tenant: Text };
    row: { build: string; workflows: string; current: Flag };
  };
  "build.runs": {
    params: { tenant: Text; build: Text; above: Whole; limit: Whole };
    row: { journal: number; workflow: string; id: string | null };
  };
  "build.see": {
    params: { tenant: Text; build: Text; workflows: Text };
    row: Record<never, never>;
  };
  "build.unserved": {
    params: { tenant: Text; minLagMs: Whole };
    row: { build: string | null; workflow: string | null; runs: number | null; lag_ms: number | null };
  };
  "business_key.claim": {
    params: { scope: Text; businessKey: Text; run: Whole; pos: Whole };
    row: Record<never, never>;
  };
  "business_key.drop": {
    params: { run: Whole; pos: Whole };
    row: Record<never, never>;
  };
  "business_key.find": {
    params: { tenant: Text; scope: Text; businessKey: Text };
    row: { tenant: string; scope: string; business_key: string; run: number; pos: number; run_id: string };
  };
  "business_key.hold": {
    params: { tenant: Text; scope: Text; businessKey: Text; run: Whole; pos: Whole };
    row: Record<never, never>;
  };
  "business_key.replace": {
    params: { tenant: Text; scope: Text; businessKey: Text; run: Whole; pos: Whole };
    row: Record<never, never>;
  };
  "business_keys.sweep": {
    params: { run: Whole };
    row: Record<never, never>;
  };
  "callback.find": {
    params: { run: Whole; pos: Whole };
    row: { tenant: string; id: string; name: string; status: string; callback: string | null; called: number | null };
  };
  "callback.secret": {
    params: { journal: Whole; tenant: Text; token: Whole; nonce: Whole };
    row: { secret: string | null };
  };
  census: {
    params: { tenant: Text; cap: Whole };
    row: { what: string | null; label: string | null; n: number | null; ms: number | null };
  };
  "chunk.append": {
    params: { run: Whole; stream: Text; chunkOffset: Whole; part: Whole; token: Whole; body: Text; total: Whole };
    row: Record<never, never>;
  };
  "chunk.find": {
    params: { run: Whole; stream: Text; chunkOffset: Whole };
    row: { token: string | null };
  };
  "chunk.forget": {
    params: { run: Whole; stream: Text; span: Whole };
    row: Record<never, never>;
  };
  "chunk.last": {
    params: { run: Whole; stream: Text };
    row: { chunk_offset: number; total: number };
  };
  "chunk.page": {
    params: { wanted: Text; tenant: Text; limit: Whole; pageBytes?: Whole };
    row: {
      k: number | null;
      journal: number;
      ended: Flag | null;
      chunk_offset: number | null;
      part: number | null;
      at: number | null;
      body: string | null;
      last_offset: number | null;
    };
  };
  "chunk.parts": {
    params: { tenant: Text; id: Text; stream: Text; limit: Whole };
    row: { part: number; bytes: number | null };
  };
  "chunk.rewind": {
    params: { run: Whole; stream: Text; part: Whole };
    row: Record<never, never>;
  };
  "chunk.weigh": {
    params: { run: Whole; stream: Text; part: Whole };
    row: { bytes: number | null };
  };
  "dead_letter.list": {
    params: { tenant: Text; sink: Text; state: Text; afterAt: Whole; afterEvent: Text; limit: Whole };
    row: {
      sink: string;
      event: string;
      journal: number;
      seq: number;
      inbox: Flag;
      kind: string;
      at: number;
      attempts: number;
      code: string;
      error: string;
      state: string;
    };
  };
  "dead_letter.purge": {
    params: { tenant: Text; before: Whole };
    row: Record<never, never>;
  };
  "dead_letter.put": {
    params: {
      tenant: Text;
      sink: Text;
      event: Text;
      journal: Whole;
      seq: Whole;
      inbox: Truth;
      kind: Text;
      attempts: Whole;
      code: Text;
      error: Text;
    };
    row: Record<never, never>;
  };
  "dead_letter.sent": {
    params: { tenant: Text; sink: Text; event: Text };
    row: Record<never, never>;
  };
  "dead_letter.settle": {
    params: { to: Text; tenant: Text; sink: Text; events: Text; limit: Whole };
    row: Record<never, never>;
  };
  "effect.create": {
    params: {
      run: Whole;
      pos: Whole;
      sub: Whole;
      role: Text;
      name: Text;
      connector: Text;
      semantics: Text;
      dispatch: Text;
      status: Text;
      authority: Whole;
      item: Whole;
      key: Text;
      businessKey: Text;
      argsHash: Text;
      args: Text;
      policy: Text;
      surplus: Truth;
      tenant: Text;
      source: Whole;
    };
    row: Record<never, never>;
  };
  "effect.find": {
    params: { run: Whole; pos: Whole; sub: Whole; tenant: Text };
    row: {
      run: number;
      pos: number;
      sub: number;
      tenant: string;
      root: number;
      role: string;
      name: string | null;
      connector: string | null;
      semantics: string;
      dispatch: string;
      status: string;
      authority: number;
      item: number | null;
      key: string;
      business_key: string | null;
      args_hash: string | null;
      args: string;
      policy: string | null;
      attempt: number;
      send_until: number | null;
      reason: string | null;
      outcome: string | null;
      surplus: Flag;
      uncertain: Flag;
      created_at: number;
      changed_at: number;
      attempt_token: string | null;
      attempt_nonce: string | null;
    };
  };
  "effect.item": {
    params: { item: Whole; tenant: Text; role: Text; status: Text; minAgeMs: Whole; limit: Whole };
    row: {
      run: number;
      pos: number;
      sub: number;
      tenant: string;
      root: number;
      role: string;
      name: string | null;
      connector: string | null;
      semantics: string;
      dispatch: string;
      status: string;
      authority: number;
      item: number | null;
      key: string;
      business_key: string | null;
      args_hash: string | null;
      args: string;
      policy: string | null;
      attempt: number;
      send_until: number | null;
      reason: string | null;
      outcome: string | null;
      surplus: Flag;
      uncertain: Flag;
      created_at: number;
      changed_at: number;
      attempt_token: string | null;
      attempt_nonce: string | null;
    };
  };
  "effect.list": {
    params: {
      tenant: Text;
      role: Text;
      status: Text;
      minAgeMs: Whole;
      afterRun: Whole;
      afterPos: Whole;
      afterSub: Whole;
      limit: Whole;
      pageBytes?: Whole;
    };
    row: {
      run: number;
      pos: number;
      sub: number;
      tenant: string;
      root: number;
      role: string;
      name: string | null;
      connector: string | null;
      semantics: string;
      dispatch: string;
      status: string;
      authority: number;
      item: number | null;
      key: string;
      business_key: string | null;
      args_hash: string | null;
      args: string;
      policy: string | null;
      attempt: number;
      send_until: number | null;
      reason: string | null;
      outcome: string | null;
      surplus: Flag;
      uncertain: Flag;
      created_at: number;
      changed_at: number;
      attempt_token: string | null;
      attempt_nonce: string | null;
    };
  };
  "effect.lock": {
    params: { run: Whole; pos: Whole; sub: Whole };
    row: { authority: number };
  };
  "effect.newest": {
    params: {
      tenant: Text;
      role: Text;
      status: Text;
      minAgeMs: Whole;
      beforeRun: Whole;
      beforePos: Whole;
      beforeSub: Whole;
      limit: Whole;
      pageBytes?: Whole;
    };
    row: {
      run: number;
      pos: number;
      sub: number;
      tenant: string;
      root: number;
      role: string;
      name: string | null;
      connector: string | null;
      semantics: string;
      dispatch: string;
      status: string;
      authority: number;
      item: number | null;
      key: string;
      business_key: string | null;
      args_hash: string | null;
      args: string;
      policy: string | null;
      attempt: number;
      send_until: number | null;
      reason: string | null;
      outcome: string | null;
      surplus: Flag;
      uncertain: Flag;
      created_at: number;
      changed_at: number;
      attempt_token: string | null;
      attempt_nonce: string | null;
    };
  };
  "effect.newest_of_run": {
    params: {
      run: Whole;
      beforePos: Whole;
      beforeSub: Whole;
      tenant: Text;
      role: Text;
      status: Text;
      minAgeMs: Whole;
      limit: Whole;
      pageBytes?: Whole;
    };
    row: {
      run: number;
      pos: number;
      sub: number;
      tenant: string;
      root: number;
      role: string;
      name: string | null;
      connector: string | null;
      semantics: string;
      dispatch: string;
      status: string;
      authority: number;
      item: number | null;
      key: string;
      business_key: string | null;
      args_hash: string | null;
      args: string;
      policy: string | null;
      attempt: number;
      send_until: number | null;
      reason: string | null;
      outcome: string | null;
      surplus: Flag;
      uncertain: Flag;
      created_at: number;
      changed_at: number;
      attempt_token: string | null;
      attempt_nonce: string | null;
    };
  };
  "effect.newest_open": {
    params: {
      statuses: Text;
      tenant: Text;
      role: Text;
      minAgeMs: Whole;
      beforeRun: Whole;
      beforePos: Whole;
      beforeSub: Whole;
      limit: Whole;
      pageBytes?: Whole;
    };
    row: {
      run: number;
      pos: number;
      sub: number;
      tenant: string;
      root: number;
      role: string;
      name: string | null;
      connector: string | null;
      semantics: string;
      dispatch: string;
      status: string;
      authority: number;
      item: number | null;
      key: string;
      business_key: string | null;
      args_hash: string | null;
      args: string;
      policy: string | null;
      attempt: number;
      send_until: number | null;
      reason: string | null;
      outcome: string | null;
      surplus: Flag;
      uncertain: Flag;
      created_at: number;
      changed_at: number;
      attempt_token: string | null;
      attempt_nonce: string | null;
    };
  };
  "effect.obligations": {
    params: {
      root: Whole;
      from: Whole;
      tenant: Text;
      below: Whole;
      status: Text;
      minAgeMs: Whole;
      limit: Whole;
      pageBytes?: Whole;
    };
    row: {
      run: number;
      pos: number;
      sub: number;
      tenant: string;
      root: number;
      role: string;
      name: string | null;
      connector: string | null;
      semantics: string;
      dispatch: string;
      status: string;
      authority: number;
      item: number | null;
      key: string;
      business_key: string | null;
      args_hash: string | null;
      args: string;
      policy: string | null;
      attempt: number;
      send_until: number | null;
      reason: string | null;
      outcome: string | null;
      surplus: Flag;
      uncertain: Flag;
      created_at: number;
      changed_at: number;
      attempt_token: string | null;
      attempt_nonce: string | null;
    };
  };
  "effect.run": {
    params: {
      run: Whole;
      from: Whole;
      tenant: Text;
      role: Text;
      status: Text;
      minAgeMs: Whole;
      limit: Whole;
      pageBytes?: Whole;
    };
    row: {
      run: number;
      pos: number;
      sub: number;
      tenant: string;
      root: number;
      role: string;
      name: string | null;
      connector: string | null;
      semantics: string;
      dispatch: string;
      status: string;
      authority: number;
      item: number | null;
      key: string;
      business_key: string | null;
      args_hash: string | null;
      args: string;
      policy: string | null;
      attempt: number;
      send_until: number | null;
      reason: string | null;
      outcome: string | null;
      surplus: Flag;
      uncertain: Flag;
      created_at: number;
      changed_at: number;
      attempt_token: string | null;
      attempt_nonce: string | null;
    };
  };
  "effect.status": {
    params: {
      to: Text;
      newAuthority: Whole;
      attempt: Whole;
      token: Whole;
      nonce: Whole;
      sendWithinMs: Whole;
      reason: Text;
      outcome: Text;
      uncertain: Truth;
      run: Whole;
      pos: Whole;
      sub: Whole;
      tenant: Text;
      by: Whole;
      from: Text;
    };
    row: Record<never, never>;
  };
  "effect.withdraw": {
    params: { run: Whole; pos: Whole };
    row: Record<never, never>;
  };
  "effects.withdraw": {
    params: { run: Whole };
    row: Record<never, never>;
  };
  "erase.blobs": {
    params: { run: Whole; limit: Whole };
    row: { bytes: number | null };
  };
  "erase.chunks": {
    params: { run: Whole; limit: Whole };
    row: Record<never, never>;
  };
  "erase.effects": {
    params: { erased: Text; rows: Text; run: Whole };
    row: Record<never, never>;
  };
  "erase.flag": {
    params: { erased: Text; runs: Text };
    row: Record<never, never>;
  };
  "erase.gates": {
    params: { erased: Text; run: Whole; positions: Text };
    row: Record<never, never>;
  };
  "erase.journals": {
    params: { run: Whole; from: Whole; limit: Whole };
    row: { journal: number | null };
  };
  "erase.labels": {
    params: { word: Text; run: Whole };
    row: Record<never, never>;
  };
  "erase.lease": {
    params: { word: Text; run: Whole };
    row: Record<never, never>;
  };
  "erase.page": {
    params: { journal: Whole; above: Whole; limit: Whole; pageBytes?: Whole };
    row: { seq: number; kind: string; body: string; counted: Flag | null };
  };
  "erase.postpone": {
    params: { delayMs: Whole; root: Whole };
    row: Record<never, never>;
  };
  "erase.published": {
    params: { erased: Text; run: Whole };
    row: Record<never, never>;
  };
  "erase.records": {
    params: { rows: Text; journal: Whole };
    row: Record<never, never>;
  };
  "erase.replies": {
    params: { rows: Text; run: Whole };
    row: Record<never, never>;
  };
  "erase.results": {
    params: { rows: Text; run: Whole };
    row: { pos: number; sub: number; outcome: string | null };
  };
  "erase.run": {
    params: { labels: Text; run: Whole };
    row: Record<never, never>;
  };
  "erase.streams": {
    params: { run: Whole };
    row: Record<never, never>;
  };
  "erase.target": {
    params: { tenant: Text; id: Text };
    row: { root: number };
  };
  "erase.tree": {
    params: { root: Whole; tenant: Text; from: Whole; limit: Whole };
    row: { journal: number; id: string; labels: string | null };
  };
  "erase.usage": {
    params: { bytes: Whole; tenant: Text };
    row: Record<never, never>;
  };
  "feed.frontier": {
    params: Record<never, never>;
    row: { id: number | null };
  };
  "feed.key": {
    params: Record<never, never>;
    row: { key: string | null };
  };
  "feed.page": {
    params: {
      stamp?: Whole;
      journal?: Whole;
      seq?: Whole;
      edge: Whole;
      scan?: Whole;
      tenant: Text;
      limit: Whole;
      pageBytes?: Whole;
      after?: Whole;
    };
    row: {
      stamp?: number | null;
      journal: number | null;
      seq: number | null;
      token: string | null;
      at: number | null;
      kind: string | null;
      body: string | null;
      id?: number;
    };
  };
  "feed.tenants": {
    params: { after: Whole; scan?: Whole; edge?: Whole };
    row: {
      tenant: string | null;
      first: number | null;
      last: number | null;
      holder: number | null;
      feed_offset?: number | null;
    };
  };
  fence: {
    params: { journal: Whole; tenant: Text; token: Whole; nonce: Whole; after: Whole };
    row: { kind: string; tenant: string; run: number; notes: number; queue: number | null };
  };
  "fence.explain": {
    params: { journal: Whole; tenant: Text };
    row: {
      token: string | null;
      nonce: string | null;
      doomed: Flag | null;
      kind: string;
      notes: number;
      owner: string | null;
      label: string | null;
      reactor: string | null;
      reason: string | null;
      head: number | null;
    };
  };
  "fence.name": {
    params: { journal: Whole; tenant: Text; token: Whole; nonce: Whole };
    row: { name: string };
  };
  "gate.answer": {
    params: { note: Whole; run: Whole; pos: Whole };
    row: Record<never, never>;
  };
  "gate.approve": {
    params: { note: Text; run: Whole; pos: Whole };
    row: Record<never, never>;
  };
  "gate.call": {
    params: { note: Whole; run: Whole; pos: Whole };
    row: Record<never, never>;
  };
  "gate.create": {
    params: { run: Whole; pos: Whole; name: Text; binds: Text; payload: Text; approvers: Text; callback: Text };
    row: Record<never, never>;
  };
  "gate.list": {
    params: { tenant: Text; afterAt: Whole; afterRun: Whole; afterPos: Whole; limit: Whole; pageBytes?: Whole };
    row: {
      run: number;
      pos: number;
      tenant: string;
      name: string;
      status: string;
      binds: string | null;
      payload: string | null;
      value: string | null;
      opened_at: number;
      approvers: string | null;
      callback: string | null;
    };
  };
  "gate.open": {
    params: { tenant: Text; afterAt: Whole; afterRun: Whole; afterPos: Whole; limit: Whole; pageBytes?: Whole };
    row: {
      run: number;
      pos: number;
      tenant: string;
      name: string;
      status: string;
      binds: string | null;
      payload: string | null;
      value: string | null;
      opened_at: number;
      approvers: string | null;
      callback: string | null;
    };
  };
  "gate.run": {
    params: {
      run: Whole;
      tenant: Text;
      open: Truth;
      afterAt: Whole;
      afterRun: Whole;
      afterPos: Whole;
      limit: Whole;
      pageBytes?: Whole;
    };
    row: {
      run: number;
      pos: number;
      tenant: string;
      name: string;
      status: string;
      binds: string | null;
      payload: string | null;
      value: string | null;
      opened_at: number;
      approvers: string | null;
      callback: string | null;
    };
  };
  "gate.status": {
    params: { to: Text; value: Text; run: Whole; pos: Whole; note: Text };
    row: Record<never, never>;
  };
  "gate.wait_again": {
    params: { run: Whole; note: Whole };
    row: Record<never, never>;
  };
  "gate.waiting": {
    params: { run: Whole; name: Text };
    row: {
      pos: number;
      binds: string | null;
      approvers: string | null;
      callback: string | null;
      called: number | null;
    };
  };
  "gates.withdraw": {
    params: { run: Whole };
    row: Record<never, never>;
  };
  "idempotency.claim": {
    params: { tenant: Text; key: Text; hash: Text };
    row: Record<never, never>;
  };
  "idempotency.drop": {
    params: { tenant: Text; key: Text };
    row: Record<never, never>;
  };
  "idempotency.find": {
    params: { tenant: Text; key: Text };
    row: { hash: string; response: string };
  };
  "idempotency.purge": {
    params: { olderMs: Whole; limit: Whole };
    row: Record<never, never>;
  };
  "idempotency.store": {
    params: { response: Text; tenant: Text; key: Text };
    row: Record<never, never>;
  };
  "item.callees": {
    params: { journals: Text };
    row: { journal: number | null; callee: string | null };
  };
  "item.sweep": {
    params: { run: Whole; pos: Whole };
    row: Record<never, never>;
  };
  "items.sweep": {
    params: { run: Whole };
    row: Record<never, never>;
  };
  "journal.head": {
    params: { journal: Whole };
    row: { head: number | null };
  };
  "journal.page": {
    params: { journal: Whole; from: Whole; tenant: Text; limit: Whole; pageBytes?: Whole };
    row: { journal: number; seq: number; token: string | null; at: number; kind: string; body: string };
  };
  "journal.terms": {
    params: { journal: Whole };
    row: { journal: number; seq: number; token: string | null; at: number; kind: string; body: string };
  };
  "journals.block": {
    params: { size: Whole };
    row: { first: number | null };
  };
  "label.counts": {
    params: { tenant: Text; limit: Whole; pairs: Text };
    row: { key: string | null; value: string | null; runs: number | null };
  };
  "labels.adopt": {
    params: { journals: Text };
    row: Record<never, never>;
  };
  "labels.create": {
    params: { journal: Whole };
    row: Record<never, never>;
  };
  "labels.drop": {
    params: { run: Whole; keys: Text };
    row: Record<never, never>;
  };
  "labels.find": {
    params: { run: Whole; tenant: Text };
    row: { labels: string | null; listed: Flag | null };
  };
  "labels.listed": {
    params: { journals: Text };
    row: Record<never, never>;
  };
  "labels.put": {
    params: { tenant: Text; run: Whole; labels: Text };
    row: Record<never, never>;
  };
  "labels.set": {
    params: { labels: Text; run: Whole };
    row: Record<never, never>;
  };
  "labels.unlisted": {
    params: { limit: Whole };
    row: { journal: number };
  };
  "lease.admit": {
    params: {
      nextToken: Whole;
      nonce: Whole;
      owner: Text;
      label: Text;
      reactor: Text;
      ttlMs: Whole;
      reason: Text;
      journal: Whole;
      token: Whole;
    };
    row: Record<never, never>;
  };
  "lease.backlogs": {
    params: { nextReactor: Text; tenant: Text; limit: Whole };
    row: { tenant: string | null; workflow: string | null };
  };
  "lease.begin": {
    params: { seq: Whole; pos: Whole; notesTaken: Whole; journal: Whole };
    row: Record<never, never>;
  };
  "lease.by_nonce": {
    params: { workflows: Text; tenant: Text; owner: Text; nonce: Whole };
    row: { journal: number };
  };
  "lease.checkpoint": {
    params: { text: Text; journal: Whole; tenant: Text; token: Whole; nonce: Whole };
    row: Record<never, never>;
  };
  "lease.create": {
    params: {
      journal: Whole;
      kind: Text;
      tenant: Text;
      source: Whole;
      run: Whole;
      workflow: Text;
      token: Whole;
      maxStallMs: Whole;
      nextReactor: Text;
      queue: Text;
    };
    row: Record<never, never>;
  };
  "lease.doom": {
    params: { journal: Whole; token: Whole; force: Truth };
    row: Record<never, never>;
  };
  "lease.due": {
    params: { workflows: Text; nextReactor: Text; tenant: Text; kind: Text; full: Text; limit: Whole };
    row: { journal: number };
  };
  "lease.first": {
    params: {
      journal: Whole;
      tenant: Text;
      workflow: Text;
      nonce: Whole;
      owner: Text;
      label: Text;
      reactor: Text;
      ttlMs: Whole;
      maxStallMs: Whole;
      queue: Text;
    };
    row: { token: string | null };
  };
  "lease.holders": {
    params: { tenant: Text; limit: Whole };
    row: { tenant: string | null; workflow: string | null };
  };
  "lease.limit": {
    params: { maxStallMs: Whole; journal: Whole };
    row: Record<never, never>;
  };
  "lease.list": {
    params: { tenant: Text; held: Truth; limit: Whole };
    row: {
      journal: number;
      kind: string;
      tenant: string;
      run: number;
      owner: string | null;
      label: string | null;
      reactor: string | null;
      ttl_ms: number;
      expires_at: number;
      acquired_at: number;
      reason: string | null;
      renewals: number;
      renewed_at: number;
      longest_gap_ms: number;
      progress: number;
      progress_at: number;
      progress_note: string | null;
      max_stall_ms: number | null;
      doomed: Flag;
      paused: Flag;
      stalled: Flag;
      notes: number;
      open: Flag;
      next_reactor: string | null;
      due_at: number;
      last_end_reason: string | null;
      workflow: string;
      build: string | null;
      checkpoint: string | null;
      slot: string | null;
      queue: string | null;
      token: string | null;
      nonce: string | null;
      now: number | null;
      name: string | null;
    };
  };
  "lease.pause": {
    params: { paused: Truth; journal: Whole };
    row: Record<never, never>;
  };
  "lease.pin": {
    params: { build: Text; journal: Whole };
    row: Record<never, never>;
  };
  "lease.preload": {
    params: { tenant: Text; aheadMs: Whole; build: Text; served: Text; limit: Whole };
    row: { journal: number };
  };
  "lease.read": {
    params: { journal: Whole };
    row: {
      journal: number;
      kind: string;
      tenant: string;
      run: number;
      owner: string | null;
      label: string | null;
      reactor: string | null;
      ttl_ms: number;
      expires_at: number;
      acquired_at: number;
      reason: string | null;
      renewals: number;
      renewed_at: number;
      longest_gap_ms: number;
      progress: number;
      progress_at: number;
      progress_note: string | null;
      max_stall_ms: number | null;
      doomed: Flag;
      paused: Flag;
      stalled: Flag;
      notes: number;
      open: Flag;
      next_reactor: string | null;
      due_at: number;
      last_end_reason: string | null;
      workflow: string;
      build: string | null;
      checkpoint: string | null;
      begins: number;
      slot: string | null;
      queue: string | null;
      token: string | null;
      nonce: string | null;
      now: number | null;
      name: string | null;
    };
  };
  "lease.release": {
    params: { open: Truth; endReason: Text; nextReactor: Text; delayMs: Whole; journal: Whole; notesTaken: Whole };
    row: Record<never, never>;
  };
  "lease.renew": {
    params: {
      progress: Whole;
      progressAgoMs: Whole;
      progressNote: Text;
      journal: Whole;
      tenant: Text;
      token: Whole;
      nonce: Whole;
    };
    row: { notes: number; ttl_ms: number };
  };
  "lease.stale": {
    params: { workflows: Text; tenant: Text; staleOf: Text; kind: Text; build: Text; full: Text; limit: Whole };
    row: { journal: number };
  };
  "lease.stall": {
    params: { journal: Whole; tenant: Text; token: Whole; nonce: Whole; progress: Whole };
    row: { journal: number };
  };
  "lease.take": {
    params: {
      nonce: Whole;
      owner: Text;
      label: Text;
      reactor: Text;
      ttlMs: Whole;
      reason: Text;
      maxStallMs: Whole;
      journal: Whole;
      token: Whole;
      previousOwner: Text;
    };
    row: { token: string | null; notes: number; checkpoint: string | null; begins: number };
  };
  "lease.unserved": {
    params: { workflows: Text; tenant: Text; minLagMs: Whole };
    row: { workflow: string | null; runs: number | null; lag_ms: number | null };
  };
  "lease.wake": {
    params: { nextReactor: Text; delayMs: Whole; journal: Whole };
    row: Record<never, never>;
  };
  "leases.doom": {
    params: Record<never, never>;
    row: Record<never, never>;
  };
  "leases.shown": {
    params: { journals: Text };
    row: {
      journal: number;
      kind: string;
      tenant: string;
      run: number;
      owner: string | null;
      label: string | null;
      reactor: string | null;
      ttl_ms: number;
      expires_at: number;
      acquired_at: number;
      reason: string | null;
      renewals: number;
      renewed_at: number;
      longest_gap_ms: number;
      progress: number;
      progress_at: number;
      progress_note: string | null;
      max_stall_ms: number | null;
      doomed: Flag;
      paused: Flag;
      stalled: Flag;
      notes: number;
      open: Flag;
      next_reactor: string | null;
      due_at: number;
      last_end_reason: string | null;
      workflow: string;
      build: string | null;
      slot: string | null;
      queue: string | null;
      token: string | null;
      nonce: string | null;
      now: number | null;
      name: string | null;
    };
  };
  "meta.get": {
    params: Record<never, never>;
    row: {
      store_id: string;
      channel?: string | null;
      epoch: number;
      token_floor: string | null;
      timeline?: string | null;
      timeline_now?: string | null;
      at: number | null;
      server_version?: number | null;
      fsync?: string | null;
      synchronous_commit?: string | null;
      full_page_writes?: string | null;
      standby?: Flag | null;
      boot?: string;
      anchor?: number | null;
      file?: string | null;
    };
  };
  "meta.restored": {
    params: Record<never, never>;
    row: { epoch: number };
  };
  "meta.secret": {
    params: Record<never, never>;
    row: { secret: string | null };
  };
  "migrations.add": {
    params: { number: Whole; name: Text; checksum: Text };
    row: Record<never, never>;
  };
  "migrations.create": {
    params: Record<never, never>;
    row: Record<never, never>;
  };
  "migrations.list": {
    params: Record<never, never>;
    row: { number: number; name: string; checksum: string };
  };
  "name.create": {
    params: { tenant: Text; name: Text; journal: Whole };
    row: Record<never, never>;
  };
  "name.find": {
    params: { tenant: Text; name: Text };
    row: { journal: number };
  };
  "name.list": {
    params: { tenant: Text; above: Text; prefix: Text; names: Text; held: Truth; limit: Whole };
    row: {
      journal: number;
      kind: string;
      tenant: string;
      run: number;
      owner: string | null;
      label: string | null;
      reactor: string | null;
      ttl_ms: number;
      expires_at: number;
      acquired_at: number;
      reason: string | null;
      renewals: number;
      renewed_at: number;
      longest_gap_ms: number;
      progress: number;
      progress_at: number;
      progress_note: string | null;
      max_stall_ms: number | null;
      doomed: Flag;
      paused: Flag;
      stalled: Flag;
      notes: number;
      open: Flag;
      next_reactor: string | null;
      due_at: number;
      last_end_reason: string | null;
      workflow: string;
      checkpoint: string | null;
      slot: string | null;
      queue: string | null;
      token: string | null;
      nonce: string | null;
      now: number | null;
      name: string;
    };
  };
  "note.count": {
    params: { journal: Whole; tenant: Text };
    row: {
      notes: number;
      begins_notes: number;
      kind: string;
      tenant: string;
      workflow: string;
      queue: number | null;
      owner: string | null;
      wakes: string | null;
    };
  };
  "note.create": {
    params: { journal: Whole; seq: Whole; kind: Text; body: Text };
    row: Record<never, never>;
  };
  "note.find": {
    params: { journal: Whole; key: Text };
    row: { n: number };
  };
  "note.key": {
    params: { journal: Whole; key: Text; n: Whole };
    row: Record<never, never>;
  };
  "obligations.discharge": {
    params: { run: Whole };
    row: Record<never, never>;
  };
  "obligations.make_due": {
    params: { run: Whole; pos: Whole; sub: Whole };
    row: Record<never, never>;
  };
  "obligations.make_due_below": {
    params: { run: Whole; pos: Whole };
    row: Record<never, never>;
  };
  "obligations.release_next": {
    params: { run: Whole };
    row: Record<never, never>;
  };
  "partition.adjust": {
    params: { queue: Whole; key: Text; class: Whole; running: Whole; waiting: Whole; weight: Whole };
    row: Record<never, never>;
  };
  "partition.admit": {
    params: { starts: Whole; vtime: Whole; cap: Whole; tat: Whole; againAt: Whole; queue: Whole; key: Text };
    row: Record<never, never>;
  };
  "partition.caps": {
    params: { cap: Whole; queue: Whole };
    row: Record<never, never>;
  };
  "partition.due": {
    params: { queue: Whole };
    row: Record<never, never>;
  };
  "partition.list": {
    params: { queue: Whole; above: Text; limit: Whole };
    row: {
      key: string;
      running: number;
      waiting: number;
      weight: number;
      pause: string | null;
      ready: Flag | null;
      tat: number;
      next_at: number | null;
      wait_ms: number | null;
    };
  };
  "partition.pause": {
    params: { queue: Whole; key: Text; pause: Text };
    row: Record<never, never>;
  };
  "partition.ready": {
    params: { queue: Whole; maxClass: Whole; workflows: Text; limit: Whole };
    row: { key: string; class: number; vtime: number; entered: number; running: number; weight: number; tat: number };
  };
  "partition.reclass": {
    params: { queue: Whole; key: Text };
    row: Record<never, never>;
  };
  "partition.return": {
    params: { running: Whole; waiting: Whole; queue: Whole; key: Text };
    row: Record<never, never>;
  };
  "partition.show": {
    params: { queue: Whole; key: Text };
    row: { running: number; waiting: number; pause: string | null; tat: number; next_at: number | null };
  };
  "partition.sweep": {
    params: { queue: Whole; above: Text; until: Text; vnow: Whole; olderMs: Whole };
    row: Record<never, never>;
  };
  "partition.sweep_range": {
    params: { queue: Whole; above: Text; limit: Whole };
    row: { until: string | null };
  };
  "partition.unpaced": {
    params: { queue: Whole };
    row: Record<never, never>;
  };
  "process.drop": {
    params: { tenant: Text; owner: Text };
    row: Record<never, never>;
  };
  "process.list": {
    params: { tenant: Text; olderMs: Whole; limit: Whole; pageBytes?: Whole };
    row: { tenant: string; owner: string; label: string; at: number; body: string; ago_ms: number | null };
  };
  "process.purge": {
    params: { olderMs: Whole };
    row: Record<never, never>;
  };
  "process.put": {
    params: { tenant: Text; owner: Text; label: Text; body: Text };
    row: Record<never, never>;
  };
  "prune.blobs": {
    params: { runs: Text };
    row: Record<never, never>;
  };
  "prune.budgets": {
    params: { runs: Text };
    row: Record<never, never>;
  };
  "prune.business_keys": {
    params: { runs: Text };
    row: Record<never, never>;
  };
  "prune.chunks": {
    params: { runs: Text };
    row: Record<never, never>;
  };
  "prune.doubt": {
    params: { runs: Text };
    row: { run: number | null };
  };
  "prune.due": {
    params: { runs: Text };
    row: Record<never, never>;
  };
  "prune.effects": {
    params: { runs: Text };
    row: Record<never, never>;
  };
  "prune.find": {
    params: { tenant: Text; before: Whole; stamp: Whole; afterJournal: Whole; afterSeq: Whole; limit: Whole };
    row: { journal: number };
  };
  "prune.gates": {
    params: { runs: Text };
    row: Record<never, never>;
  };
  "prune.heads": {
    params: { runs: Text };
    row: { run: number | null; journal: number | null; seq: number; stamp: string | null };
  };
  "prune.keys": {
    params: { runs: Text };
    row: Record<never, never>;
  };
  "prune.labels": {
    params: { runs: Text };
    row: Record<never, never>;
  };
  "prune.leases": {
    params: { journals: Text };
    row: Record<never, never>;
  };
  "prune.lock": {
    params: { roots: Text; tenant: Text };
    row: { journal: number };
  };
  "prune.members": {
    params: { roots: Text; erased: Text; tenant: Text };
    row: {
      journal: number | null;
      root: number | null;
      tenant: string;
      id: string;
      workflow: string;
      version: string | null;
      phase: string;
      input_hash: string;
      labels: string | null;
      parent: number | null;
      created_at: number;
      ended_at: number | null;
      erased: Flag | null;
      token: string | null;
    };
  };
  "prune.published": {
    params: { runs: Text };
    row: Record<never, never>;
  };
  "prune.records": {
    params: { journals: Text };
    row: Record<never, never>;
  };
  "prune.replies": {
    params: { runs: Text };
    row: Record<never, never>;
  };
  "prune.runs": {
    params: { runs: Text };
    row: Record<never, never>;
  };
  "prune.streams": {
    params: { runs: Text };
    row: Record<never, never>;
  };
  "prune.timers": {
    params: { runs: Text };
    row: Record<never, never>;
  };
  "prune.tombstones": {
    params: { archive: Text; runs: Text };
    row: Record<never, never>;
  };
  "prune.usage": {
    params: { journals: Text; runs: Text; tenant: Text };
    row: Record<never, never>;
  };
  "published.list": {
    params: { tenant: Text; id: Text; above: Text; name: Text; limit: Whole; pageBytes?: Whole };
    row: { name: string; value: string; seq: number; at: number };
  };
  "published.put": {
    params: { run: Whole; name: Text; value: Text; seq: Whole; max: Whole };
    row: Record<never, never>;
  };
  "queue.advance": {
    params: { tat: Whole; vnow: Whole; starts: Whole; id: Whole };
    row: Record<never, never>;
  };
  "queue.busy": {
    params: { queue: Whole };
    row: { running: number | null };
  };
  "queue.change": {
    params: {
      spec: Text;
      override: Text;
      counts: Text;
      concurrency: Whole;
      keyConcurrency: Whole;
      rateUs: Whole;
      rateBurst: Whole;
      keyRateUs: Whole;
      keyRateBurst: Whole;
      id: Whole;
    };
    row: Record<never, never>;
  };
  "queue.claim": {
    params: { tenant: Text; name: Text };
    row: {
      id: number;
      name: string;
      concurrency: number | null;
      key_concurrency: number | null;
      rate_us: number | null;
      rate_burst: number | null;
      key_rate_us: number | null;
      key_rate_burst: number | null;
      tat: number;
      vnow: number;
      started: number;
      now: number | null;
    };
  };
  "queue.count": {
    params: { tenant: Text };
    row: { n: number | null };
  };
  "queue.create": {
    params: {
      id: Whole;
      tenant: Text;
      name: Text;
      spec: Text;
      counts: Text;
      concurrency: Whole;
      keyConcurrency: Whole;
      rateUs: Whole;
      rateBurst: Whole;
      keyRateUs: Whole;
      keyRateBurst: Whole;
    };
    row: Record<never, never>;
  };
  "queue.find": {
    params: { tenant: Text; name: Text };
    row: {
      id: number;
      name: string;
      spec: string;
      override: string | null;
      counts: string;
      key_concurrency: number | null;
      version: number;
    };
  };
  "queue.heads": {
    params: { queue: Whole; key: Text; limit: Whole };
    row: {
      journal: number;
      class: number;
      expires: Flag;
      waited_ms: number | null;
      workflow: string;
      build: string | null;
      notes: number;
      begins: number;
      owner: string | null;
      last_end_reason: string | null;
      token: string | null;
      next_token: string | null;
      head: number | null;
      created: string | null;
      run_id: string | null;
    };
  };
  "queue.in_use": {
    params: { queue: Whole };
    row: { used: Flag | null };
  };
  "queue.lock": {
    params: { tenant: Text; name: Text };
    row: {
      id: number;
      name: string;
      spec: string;
      override: string | null;
      counts: string;
      key_concurrency: number | null;
      version: number;
    };
  };
  "queue.pause": {
    params: { pause: Text; id: Whole };
    row: Record<never, never>;
  };
  "queue.show": {
    params: { tenant: Text; above: Text; name: Text; limit: Whole };
    row: {
      id: number;
      name: string;
      version: number;
      spec: string;
      override: string | null;
      pause: string | null;
      tat: number;
      rate_us: number | null;
      rate_burst: number | null;
      started: number;
      now: number | null;
      ahead: number | null;
      running: number | null;
      waiting: number | null;
      keys: number | null;
      wait_ms: number | null;
    };
  };
  "quota.create": {
    params: { tenant: Text };
    row: Record<never, never>;
  };
  "quota.flag": {
    params: { after: Whole; until: Whole };
    row: Record<never, never>;
  };
  "quota.get": {
    params: { tenant: Text };
    row: {
      tenant: string | null;
      runs: number | null;
      bytes: number | null;
      schedules: number | null;
      streams: number | null;
      bytes_used: number | null;
      default_runs: number | null;
      default_bytes: number | null;
      default_schedules: number | null;
      default_streams: number | null;
      metered: number | null;
      open_runs: number | null;
      all_schedules: number | null;
    };
  };
  "quota.list": {
    params: { above: Text; limit: Whole };
    row: {
      tenant: string | null;
      runs: number | null;
      bytes: number | null;
      schedules: number | null;
      streams: number | null;
      bytes_used: number | null;
      default_runs: number | null;
      default_bytes: number | null;
      default_schedules: number | null;
      default_streams: number | null;
      metered: number | null;
      open_runs: number | null;
      all_schedules: number | null;
    };
  };
  "quota.lock": {
    params: { tenant: Text };
    row: {
      tenant: string | null;
      runs: number | null;
      bytes: number | null;
      schedules: number | null;
      streams: number | null;
      runs_used: number | null;
      runs_at: number | null;
      bytes_used: number | null;
      default_runs: number | null;
      default_bytes: number | null;
      default_schedules: number | null;
      default_streams: number | null;
      metered: number | null;
      metered_at: number | null;
      at: number | null;
    };
  };
  "quota.open": {
    params: { tenant: Text };
    row: { n: number | null };
  };
  "quota.range": {
    params: { after: Whole; limit: Whole };
    row: { until: number | null };
  };
  "quota.recount": {
    params: { tenant: Text };
    row: Record<never, never>;
  };
  "quota.seen": {
    params: { tenant: Text };
    row: {
      tenant: string | null;
      runs: number | null;
      bytes: number | null;
      schedules: number | null;
      streams: number | null;
      runs_used: number | null;
      runs_at: number | null;
      bytes_used: number | null;
      default_runs: number | null;
      default_bytes: number | null;
      default_schedules: number | null;
      default_streams: number | null;
      metered: number | null;
      metered_at: number | null;
      at: number | null;
    };
  };
  "quota.set": {
    params: { runs: Whole; bytes: Whole; schedules: Whole; streams: Whole; tenant: Text };
    row: Record<never, never>;
  };
  "quota.use": {
    params: { used: Whole; fresh: Truth; tenant: Text };
    row: Record<never, never>;
  };
  "record.append": {
    params: { journal: Whole; seq: Whole; token: Whole; kind: Text; body: Text };
    row: Record<never, never>;
  };
  "record.create": {
    params: { journal: Whole; seq: Whole; token: Whole; kind: Text; body: Text };
    row: Record<never, never>;
  };
  "reply.create": {
    params: { run: Whole; note: Whole; body: Text };
    row: Record<never, never>;
  };
  "reply.find": {
    params: { tenant: Text; id: Text; n: Whole };
    row: { n: number; body: string; at: number };
  };
  "retention.archived": {
    params: { tenant: Text; above: Text; id: Text; limit: Whole };
    row: {
      id: string;
      journal: number | null;
      archive: string | null;
      at: number;
      created_at: number | null;
      ended_at: number | null;
    };
  };
  "retention.blobs": {
    params: {
      runs: Text;
      afterRun: Whole;
      afterName: Text;
      afterN: Whole;
      tenant: Text;
      limit: Whole;
      pageBytes?: Whole;
    };
    row: { journal: number; blob: string; n: number; chunks: number; bytes: number; body: string };
  };
  "retention.chunks": {
    params: {
      runs: Text;
      afterRun: Whole;
      afterName: Text;
      afterN: Whole;
      tenant: Text;
      limit: Whole;
      pageBytes?: Whole;
    };
    row: {
      run: number;
      stream: string;
      chunk_offset: number;
      part: number;
      token: string | null;
      at: number;
      body: string | null;
    };
  };
  "retention.drop": {
    params: { tenant: Text; journals: Text };
    row: Record<never, never>;
  };
  "retention.due": {
    params: { tenant: Text; until: Whole; limit: Whole };
    row: { journal: number; due_at: number };
  };
  "retention.figures": {
    params: { tenant: Text };
    row: { first: number | null; now: number | null };
  };
  "retention.postpone": {
    params: { dueAt: Whole; tenant: Text; journals: Text };
    row: Record<never, never>;
  };
  "retention.preview": {
    params: { tenant: Text; until: Whole; cap: Whole };
    row: { workflow: string; trees: number | null; ended_at: number | null; due_at: number | null };
  };
  "retention.put": {
    params: { tenant: Text; rows: Text };
    row: Record<never, never>;
  };
  "retention.records": {
    params: {
      journals: Text;
      afterJournal: Whole;
      afterSeq: Whole;
      through: Whole;
      limit: Whole;
      tenant: Text;
      pageBytes?: Whole;
    };
    row: { journal: number; seq: number; token: string | null; at: number; kind: string; body: string };
  };
  "retention.store": {
    params: Record<never, never>;
    row: { store_id: string; epoch: number; now: number | null };
  };
  "retention.walk": {
    params: { tenant: Text; until: Whole; afterAt: Whole; afterJournal: Whole; limit: Whole };
    row: {
      journal: number;
      workflow: string;
      ended_at: number | null;
      parent: number | null;
      retain_ms: number | null;
    };
  };
  "run.assert_continues": {
    params: { journal: Whole };
    row: { ok: number | null };
  };
  "run.assert_settled": {
    params: { journal: Whole; armed: Truth };
    row: { ok: number | null };
  };
  "run.by_label": {
    params: {
      tenant: Text;
      key: Text;
      value: Text;
      before: Whole;
      others: Text;
      workflow: Text;
      lower: Text;
      upper: Text;
      status: Text;
      startedSince: Whole;
      startedUntil: Whole;
      endedSince: Whole;
      endedUntil: Whole;
      inDoubt: Truth;
      limit: Whole;
      pageBytes?: Whole;
    };
    row: {
      journal: number;
      tenant: string;
      id: string;
      workflow: string;
      version: string | null;
      phase: string;
      cause: string | null;
      stuck_from: string | null;
      input_hash: string;
      labels: string | null;
      outcome: string | null;
      parent: number | null;
      root: number;
      created_at: number;
      ended_at: number | null;
      notes: number;
      lease_owner: string | null;
      lease_next_reactor: string | null;
    };
  };
  "run.by_phase": {
    params: { tenant: Text; phase: Text; before: Whole; workflow: Text; labels: Text; limit: Whole; pageBytes?: Whole };
    row: {
      journal: number;
      tenant: string;
      id: string;
      workflow: string;
      version: string | null;
      phase: string;
      cause: string | null;
      stuck_from: string | null;
      input_hash: string;
      labels: string | null;
      outcome: string | null;
      parent: number | null;
      root: number;
      created_at: number;
      ended_at: number | null;
      notes: number;
      lease_owner: string | null;
      lease_next_reactor: string | null;
    };
  };
  "run.by_prefix": {
    params: {
      tenant: Text;
      lower: Text;
      upper: Text;
      workflow: Text;
      status: Text;
      startedSince: Whole;
      startedUntil: Whole;
      endedSince: Whole;
      endedUntil: Whole;
      inDoubt: Truth;
      limit: Whole;
      pageBytes?: Whole;
    };
    row: {
      journal: number;
      tenant: string;
      id: string;
      workflow: string;
      version: string | null;
      phase: string;
      cause: string | null;
      stuck_from: string | null;
      input_hash: string;
      labels: string | null;
      outcome: string | null;
      parent: number | null;
      root: number;
      created_at: number;
      ended_at: number | null;
      notes: number;
      lease_owner: string | null;
      lease_next_reactor: string | null;
    };
  };
  "run.create": {
    params: {
      journal: Whole;
      id: Text;
      workflow: Text;
      version: Text;
      inputHash: Text;
      labels: Text;
      parent: Whole;
      parentPos: Whole;
      tenant: Text;
    };
    row: Record<never, never>;
  };
  "run.descendants": {
    params: {
      root: Whole;
      tenant: Text;
      before: Whole;
      workflow: Text;
      labels: Text;
      status: Text;
      startedSince: Whole;
      startedUntil: Whole;
      endedSince: Whole;
      endedUntil: Whole;
      inDoubt: Truth;
      limit: Whole;
      pageBytes?: Whole;
    };
    row: {
      journal: number;
      tenant: string;
      id: string;
      workflow: string;
      version: string | null;
      phase: string;
      cause: string | null;
      stuck_from: string | null;
      input_hash: string;
      labels: string | null;
      outcome: string | null;
      parent: number | null;
      root: number;
      created_at: number;
      ended_at: number | null;
      notes: number;
      lease_owner: string | null;
      lease_next_reactor: string | null;
    };
  };
  "run.find": {
    params: { tenant: Text; id: Text };
    row: {
      journal: number;
      tenant: string;
      id: string;
      workflow: string;
      version: string | null;
      phase: string;
      cause: string | null;
      stuck_from: string | null;
      input_hash: string;
      labels: string | null;
      outcome: string | null;
      parent: number | null;
      root: number;
      created_at: number;
      ended_at: number | null;
    };
  };
  "run.finished": {
    params: {
      tenant: Text;
      since: Whole;
      through: Whole;
      edge: Whole;
      before: Whole;
      workflow: Text;
      status: Text;
      startedSince: Whole;
      startedUntil: Whole;
      inDoubt: Truth;
      limit: Whole;
      pageBytes?: Whole;
    };
    row: {
      journal: number;
      tenant: string;
      id: string;
      workflow: string;
      version: string | null;
      phase: string;
      cause: string | null;
      stuck_from: string | null;
      input_hash: string;
      labels: string | null;
      outcome: string | null;
      parent: number | null;
      root: number;
      created_at: number;
      ended_at: number | null;
      notes: number;
      lease_owner: string | null;
      lease_next_reactor: string | null;
    };
  };
  "run.get": {
    params: { tenant: Text; id: Text };
    row: {
      journal: number;
      tenant: string;
      id: string;
      workflow: string;
      version: string | null;
      phase: string;
      cause: string | null;
      stuck_from: string | null;
      input_hash: string;
      labels: string | null;
      outcome: string | null;
      parent: number | null;
      root: number;
      created_at: number;
      ended_at: number | null;
      notes: number;
      lease_owner: string | null;
      lease_next_reactor: string | null;
    };
  };
  "run.in_doubt": {
    params: {
      tenant: Text;
      before: Whole;
      workflow: Text;
      labels: Text;
      status: Text;
      startedSince: Whole;
      startedUntil: Whole;
      endedSince: Whole;
      endedUntil: Whole;
      limit: Whole;
      pageBytes?: Whole;
    };
    row: {
      journal: number;
      tenant: string;
      id: string;
      workflow: string;
      version: string | null;
      phase: string;
      cause: string | null;
      stuck_from: string | null;
      input_hash: string;
      labels: string | null;
      outcome: string | null;
      parent: number | null;
      root: number;
      created_at: number;
      ended_at: number | null;
      notes: number;
      lease_owner: string | null;
      lease_next_reactor: string | null;
    };
  };
  "run.list_key": {
    params: { journal: Whole; tenant: Text };
    row: { id: string; created_at: number; ended_at: number | null };
  };
  "run.live": {
    params: { journal: Whole; tenant: Text };
    row: { ok: number | null };
  };
  "run.parent": {
    params: { journal: Whole };
    row: { parent: number | null };
  };
  "run.phase": {
    params: { to: Text; cause: Text; outcome: Text; journal: Whole; from: Text; decided: Text; parent: Whole };
    row: Record<never, never>;
  };
  "run.progress": {
    params: { ids: Text; tenant: Text; pageBytes?: Whole };
    row: {
      journal: number;
      id: string;
      workflow: string;
      phase: string;
      outcome: string | null;
      ended_at: number | null;
      lease_owner: string | null;
      lease_next_reactor: string | null;
      slot: string | null;
    };
  };
  "run.rate": {
    params: { tenant: Text; size: Whole; limit: Whole; since: Whole; buckets: Whole };
    row: { at: number | null; started: number | null; ended: number | null; failed: number | null };
  };
  "run.root": {
    params: {
      journal: Whole;
      tenant: Text;
      id: Text;
      workflow: Text;
      version: Text;
      inputHash: Text;
      labels: Text;
      admitted: Truth;
    };
    row: Record<never, never>;
  };
  "run.runnable": {
    params: { tenant: Text; before: Whole; workflow: Text; labels: Text; limit: Whole; pageBytes?: Whole };
    row: {
      journal: number;
      tenant: string;
      id: string;
      workflow: string;
      version: string | null;
      phase: string;
      cause: string | null;
      stuck_from: string | null;
      input_hash: string;
      labels: string | null;
      outcome: string | null;
      parent: number | null;
      root: number;
      created_at: number;
      ended_at: number | null;
      notes: number;
      lease_owner: string | null;
      lease_next_reactor: string | null;
    };
  };
  "run.runnable_pinned": {
    params: { tenant: Text; before: Whole; workflow: Text; labels: Text; limit: Whole };
    row: {
      journal: number;
      tenant: string;
      id: string;
      workflow: string;
      version: string | null;
      phase: string;
      cause: string | null;
      stuck_from: string | null;
      input_hash: string;
      labels: string | null;
      outcome: string | null;
      parent: number | null;
      root: number;
      created_at: number;
      ended_at: number | null;
      notes: number;
      lease_owner: string | null;
      lease_next_reactor: string | null;
    };
  };
  "run.running": {
    params: { tenant: Text; before: Whole; workflow: Text; labels: Text; limit: Whole; pageBytes?: Whole };
    row: {
      journal: number;
      tenant: string;
      id: string;
      workflow: string;
      version: string | null;
      phase: string;
      cause: string | null;
      stuck_from: string | null;
      input_hash: string;
      labels: string | null;
      outcome: string | null;
      parent: number | null;
      root: number;
      created_at: number;
      ended_at: number | null;
      notes: number;
      lease_owner: string | null;
      lease_next_reactor: string | null;
    };
  };
  "run.started": {
    params: {
      tenant: Text;
      since: Whole;
      through: Whole;
      edge: Whole;
      before: Whole;
      workflow: Text;
      status: Text;
      endedSince: Whole;
      endedUntil: Whole;
      inDoubt: Truth;
      limit: Whole;
      pageBytes?: Whole;
    };
    row: {
      journal: number;
      tenant: string;
      id: string;
      workflow: string;
      version: string | null;
      phase: string;
      cause: string | null;
      stuck_from: string | null;
      input_hash: string;
      labels: string | null;
      outcome: string | null;
      parent: number | null;
      root: number;
      created_at: number;
      ended_at: number | null;
      notes: number;
      lease_owner: string | null;
      lease_next_reactor: string | null;
    };
  };
  "run.unlisted": {
    params: {
      tenant: Text;
      before: Whole;
      labels: Text;
      workflow: Text;
      lower: Text;
      upper: Text;
      status: Text;
      startedSince: Whole;
      startedUntil: Whole;
      endedSince: Whole;
      endedUntil: Whole;
      inDoubt: Truth;
      limit: Whole;
      pageBytes?: Whole;
    };
    row: {
      journal: number;
      tenant: string;
      id: string;
      workflow: string;
      version: string | null;
      phase: string;
      cause: string | null;
      stuck_from: string | null;
      input_hash: string;
      labels: string | null;
      outcome: string | null;
      parent: number | null;
      root: number;
      created_at: number;
      ended_at: number | null;
      notes: number;
      lease_owner: string | null;
      lease_next_reactor: string | null;
    };
  };
  "schedule.change": {
    params: { spec: Text; nextAt: Whole; paused: Truth; tenant: Text; id: Text; version: Whole; seen: Text };
    row: { tenant: string; id: string; version: number; spec: string; next_at: number | null; paused: Flag };
  };
  "schedule.count": {
    params: { tenant: Text };
    row: { n: number | null };
  };
  "schedule.delete": {
    params: { tenant: Text; id: Text };
    row: Record<never, never>;
  };
  "schedule.due": {
    params: { tenant: Text; limit: Whole; pageBytes?: Whole };
    row: { tenant: string; id: string; version: number; spec: string; next_at: number | null; paused: Flag };
  };
  "schedule.find": {
    params: { tenant: Text; id: Text };
    row: { version: number };
  };
  "schedule.fire": {
    params: { nextAt: Whole; spec: Text; tenant: Text; id: Text; version: Whole; seen: Text };
    row: Record<never, never>;
  };
  "schedule.list": {
    params: { tenant: Text; above: Text; limit: Whole; pageBytes?: Whole };
    row: { tenant: string; id: string; version: number; spec: string; next_at: number | null; paused: Flag };
  };
  "schedule.put": {
    params: { tenant: Text; id: Text; spec: Text; nextAt: Whole; paused: Truth; admitted: Truth; fresh: Truth };
    row: { tenant: string; id: string; version: number; spec: string; next_at: number | null; paused: Flag };
  };
  "schedule.tenants": {
    params: { limit: Whole };
    row: { tenant: string | null };
  };
  "signal.find": {
    params: { name: Text; byToken: Truth; tenant: Text; id: Text };
    row: { journal: number; root: number; restricted: Flag | null };
  };
  "sink.checkpoints": {
    params: { tenant: Text };
    row: { checkpoint: string | null };
  };
  "sink.kept_runs": {
    params: { tenant: Text; after: Whole; before: Whole; cap: Whole };
    row: { n: number | null };
  };
  "sink.list": {
    params: { tenant: Text; above: Text; limit: Whole };
    row: { journal: number; name: string; letters: number | null };
  };
  "slot.admit": {
    params: { journal: Whole };
    row: Record<never, never>;
  };
  "slot.ahead": {
    params: { queue: Whole; key: Text; class: Whole; since: Whole; journal: Whole; limit: Whole };
    row: { n: number | null };
  };
  "slot.assert_unnested": {
    params: { journal: Whole; tenant: Text; queue: Text; key: Text };
    row: { ok: number | null };
  };
  "slot.blockers": {
    params: { journal: Whole; limit: Whole; tenant: Text };
    row: {
      journal: number | null;
      id: string;
      parent: number | null;
      queue: string | null;
      key: string | null;
      state: string | null;
      concurrency: number | null;
      key_concurrency: number | null;
      moves: Flag | null;
    };
  };
  "slot.create": {
    params: { journal: Whole; key: Text; class: Whole; state: Text; expires: Truth; tenant: Text; queue: Text };
    row: { queue: number };
  };
  "slot.delete": {
    params: { journal: Whole };
    row: Record<never, never>;
  };
  "slot.held": {
    params: { queue: Whole; fromKey: Text; toKey: Text; limit: Whole };
    row: {
      journal: number;
      key: string;
      class: number;
      state: string;
      since_ms: number | null;
      id: string;
      workflow: string;
      phase: string;
      lease_owner: string | null;
      lease_next_reactor: string | null;
      slot: string;
    };
  };
  "slot.read": {
    params: { journal: Whole };
    row: {
      journal: number;
      queue: number;
      key: string;
      class: number;
      since: number;
      state: string;
      keeps: Flag;
      expires: Flag;
    };
  };
  "slot.set": {
    params: { state: Text; class: Whole; journal: Whole };
    row: Record<never, never>;
  };
  "slot.show": {
    params: { tenant: Text; id: Text };
    row: {
      id: string;
      workflow: string;
      journal: number;
      queue: number;
      key: string;
      class: number;
      since: number;
      state: string;
      since_ms: number | null;
      name: string | null;
    };
  };
  "slot.waiting": {
    params: { queue: Whole; fromKey: Text; toKey: Text; limit: Whole };
    row: {
      journal: number;
      key: string;
      class: number;
      state: string;
      since_ms: number | null;
      id: string;
      workflow: string;
      phase: string;
      lease_owner: string | null;
      lease_next_reactor: string | null;
      slot: string;
    };
  };
  "store.record": {
    params: { kind: Text; body: Text };
    row: Record<never, never>;
  };
  "store.records": {
    params: { kind: Text; bodies: Text };
    row: Record<never, never>;
  };
  "stream.expired": {
    params: { above: Whole; limit: Whole };
    row: { run: number; name: string; expired: Flag | null };
  };
  "stream.fence": {
    params: { journal: Whole; tenant: Text; token: Whole; nonce: Whole };
    row: { kind: string; begins: number };
  };
  "stream.forget": {
    params: { run: Whole; name: Text };
    row: Record<never, never>;
  };
  "stream.list": {
    params: { tenant: Text; id: Text };
    row: { name: string; retain_ms: number | null; chunk_offset: number; total: number; at: number };
  };
  "stream.open": {
    params: { run: Whole; name: Text; retainMs: Whole; max: Whole };
    row: Record<never, never>;
  };
  "stream.subject": {
    params: { journal: Whole };
    row: { tenant: string; id: string; now: number | null };
  };
  subjects: {
    params: { journals: Text; tenant: Text };
    row: {
      journal: number | null;
      kind: string;
      name: string | null;
      run: string | null;
      workflow: string | null;
      version: string | null;
      labels: string | null;
      root: string | null;
      parent: string | null;
      pos: number | null;
      sub: number | null;
      effect: string | null;
    };
  };
  "timer.create": {
    params: { run: Whole; pos: Whole; purpose: Text; until: Whole; delayMs: Whole };
    row: Record<never, never>;
  };
  "timer.due": {
    params: { tenant: Text; limit: Whole };
    row: {
      run: number;
      pos: number;
      purpose: string;
      tenant: string;
      status: string;
      due_at: number;
      late_ms: number | null;
    };
  };
  "timer.fire": {
    params: { run: Whole; pos: Whole; purpose: Text; tenant: Text };
    row: Record<never, never>;
  };
  "timer.list": {
    params: { tenant: Text; limit: Whole };
    row: { run: number; pos: number; purpose: string; tenant: string; status: string; due_at: number };
  };
  "timer.move": {
    params: { delayMs: Whole; run: Whole; maxDelayMs: Whole };
    row: Record<never, never>;
  };
  "timer.run": {
    params: { run: Whole; tenant: Text; limit: Whole };
    row: { run: number; pos: number; purpose: string; tenant: string; status: string; due_at: number };
  };
  "timer.status": {
    params: { to: Text; run: Whole; pos: Whole; purpose: Text };
    row: Record<never, never>;
  };
  "timer.tenants": {
    params: { limit: Whole };
    row: { tenant: string | null };
  };
  "timers.cancel": {
    params: { run: Whole };
    row: Record<never, never>;
  };
  "timers.unexpire": {
    params: { run: Whole };
    row: Record<never, never>;
  };
  "timers.withdraw": {
    params: { run: Whole };
    row: Record<never, never>;
  };
  "token.get": {
    params: { id: Text };
    row: {
      id: string;
      tenant: string;
      name: string;
      role: string;
      hash: string;
      created_at: number;
      expires_at: number | null;
      revoked_at: number | null;
      used_at: number | null;
    };
  };
  "token.list": {
    params: { tenant: Text; above: Text; limit: Whole };
    row: {
      id: string;
      tenant: string;
      name: string;
      role: string;
      hash: string;
      created_at: number;
      expires_at: number | null;
      revoked_at: number | null;
      used_at: number | null;
    };
  };
  "token.put": {
    params: { id: Text; tenant: Text; name: Text; role: Text; hash: Text; delayMs: Whole };
    row: {
      id: string;
      tenant: string;
      name: string;
      role: string;
      hash: string;
      created_at: number;
      expires_at: number | null;
      revoked_at: number | null;
      used_at: number | null;
    };
  };
  "token.revoke": {
    params: { id: Text; tenant: Text };
    row: {
      id: string;
      tenant: string;
      name: string;
      role: string;
      hash: string;
      created_at: number;
      expires_at: number | null;
      revoked_at: number | null;
      used_at: number | null;
    };
  };
  "token.touch": {
    params: { id: Text };
    row: Record<never, never>;
  };
  "tombstone.find": {
    params: { tenant: Text; id: Text };
    row: { token: string | null };
  };
  "tombstone.list_key": {
    params: { journal: Whole; tenant: Text };
    row: { id: string; created_at: number | null; ended_at: number | null };
  };
  "usage.add": {
    params: { tenant: Text; bytes: Whole };
    row: Record<never, never>;
  };
  "usage.begin": {
    params: Record<never, never>;
    row: Record<never, never>;
  };
  "usage.edge": {
    params: { after: Whole; limit: Whole };
    row: { edge: number | null; last: number | null };
  };
  "usage.lock": {
    params: Record<never, never>;
    row: { metered: number | null };
  };
  "usage.moved": {
    params: { edge: Whole; fresh: Truth };
    row: Record<never, never>;
  };
  "usage.sum": {
    params: { after: Whole; edge: Whole };
    row: { tenant: string; bytes: number | null };
  };
  "value.forget": {
    params: { key: Text; through: Whole; tenant: Text; source: Whole };
    row: Record<never, never>;
  };
  "value.get": {
    params: { tenant: Text; key: Text };
    row: { tenant: string; key: string; version: number; value: string | null; at: number };
  };
  "value.history": {
    params: { tenant: Text; key: Text; after: Whole; limit: Whole; pageBytes?: Whole };
    row: { tenant: string; key: string; version: number; value: string | null; at: number };
  };
  "value.list": {
    params: { tenant: Text; lower: Text; upper: Text; above: Text; limit: Whole; pageBytes?: Whole };
    row: { tenant: string; key: string; version: number; value: string | null; at: number };
  };
  "value.list_down": {
    params: { tenant: Text; lower: Text; upper: Text; below: Text; limit: Whole };
    row: { tenant: string; key: string; version: number; value: string | null; at: number };
  };
  "value.log": {
    params: { tenant: Text; source: Whole; key: Text; version: Whole; value: Text };
    row: Record<never, never>;
  };
  "value.put": {
    params: { key: Text; version: Whole; value: Text; tenant: Text; source: Whole };
    row: Record<never, never>;
  };
  "witness.create": {
    params: { id: Whole };
    row: Record<never, never>;
  };
  "witness.find": {
    params: { id: Whole };
    row: { ok: number | null };
  };
  "witness.purge": {
    params: { olderMs: Whole };
    row: Record<never, never>;
  };
  "work.due": {
    params: { tenant: Text; cap: Whole };
    row: { reactor: string | null; n: number | null; late_ms: number | null };
  };
}

/** And those that only PostgreSQL has. */
export interface PostgresStatements extends SharedStatements {
  "admit.pick": {
    params: { room: Whole; concurrency: Whole; queue: Whole; maxClass: Whole; workflows: Text };
    row: {
      key: string;
      key_class: number;
      vtime: number;
      entered: number;
      running: number;
      weight: number;
      tat: number;
      free: number | null;
      journal: number;
      class: number;
      expires: Flag;
      waited_ms: number | null;
      token: string | null;
      notes: number | null;
      owner: string | null;
      last_end_reason: string | null;
      head: number | null;
      run_id: string | null;
      created: string | null;
      workflow: string | null;
      build: string | null;
    };
  };
  "admit.take": {
    params: {
      journals: Text;
      tokens: Text;
      seqs: Text;
      reasons: Text;
      bodies: Text;
      keys: Text;
      starts: Text;
      vtimes: Text;
      tats: Text;
      agains: Text;
      nonce: Whole;
      owner: Text;
      label: Text;
      reactor: Text;
      ttlMs: Whole;
      cap: Whole;
      queue: Whole;
      tat: Whole;
      vnow: Whole;
      firstStarts: Whole;
    };
    row: { journal: number; token: string | null; notes: number; begins: number };
  };
  append_many: {
    params: {
      journals: Text;
      tenants: Text;
      tokens: Text;
      nonces: Text;
      afters: Text;
      seqs: Text;
      kinds: Text;
      bodies: Text;
      id: Whole;
    };
    row: { journal: number | null; notes: number };
  };
  "append_many.check": {
    params: { journals: Text; tenants: Text; tokens: Text; afters: Text };
    row: { journal: number | null; notes: number; tenant: string; workflow: string };
  };
  append_one: {
    params: {
      journal: Whole;
      token: Whole;
      tenant: Text;
      nonce: Whole;
      after: Whole;
      seq: Whole;
      kind: Text;
      body: Text;
      id: Whole;
    };
    row: { journal: number | null; notes: number };
  };
  claim_many: {
    params: {
      journals: Text;
      tokens: Text;
      previousOwners: Text;
      reasons: Text;
      nonce: Whole;
      owner: Text;
      label: Text;
      reactor: Text;
      ttlMs: Whole;
      maxStallMs: Whole;
    };
    row: { journal: number; token: string | null; notes: number; begins: number };
  };
  "claim_many.pin": {
    params: { build: Text; journals: Text };
    row: Record<never, never>;
  };
  create_many: {
    params: {
      journals: Text;
      tenants: Text;
      ids: Text;
      workflows: Text;
      versions: Text;
      inputHashes: Text;
      bodies: Text;
      nonces: Text;
      owners: Text;
      ownerLabels: Text;
      reactors: Text;
      ttls: Text;
      stalls: Text;
      id: Whole;
    };
    row: { journal: number; token: string | null };
  };
  "create_many.check": {
    params: { journals: Text };
    row: { journal: number; token: string | null };
  };
  "create_many.counted": {
    params: {
      journals: Text;
      tenants: Text;
      ids: Text;
      workflows: Text;
      versions: Text;
      inputHashes: Text;
      labelSets: Text;
      bodies: Text;
      nonces: Text;
      owners: Text;
      ownerLabels: Text;
      reactors: Text;
      ttls: Text;
      stalls: Text;
      id: Whole;
    };
    row: { journal: number; token: string | null };
  };
  "create_many.labelled": {
    params: {
      journals: Text;
      tenants: Text;
      ids: Text;
      workflows: Text;
      versions: Text;
      inputHashes: Text;
      labelSets: Text;
      bodies: Text;
      nonces: Text;
      owners: Text;
      ownerLabels: Text;
      reactors: Text;
      ttls: Text;
      stalls: Text;
      id: Whole;
    };
    row: { journal: number; token: string | null };
  };
  "create_many.queued": {
    params: {
      journals: Text;
      tenants: Text;
      ids: Text;
      workflows: Text;
      versions: Text;
      inputHashes: Text;
      labelSets: Text;
      bodies: Text;
      queues: Text;
      keys: Text;
      priorities: Text;
      weights: Text;
      stalls: Text;
      id: Whole;
    };
    row: { journal: number | null; token: string | null };
  };
  end_many: {
    params: {
      journals: Text;
      tenants: Text;
      tokens: Text;
      nonces: Text;
      afters: Text;
      bodies: Text;
      noteCounts: Text;
      statuses: Text;
      outcomes: Text;
      id: Whole;
    };
    row: { journal: number | null; notes: number };
  };
  "end_many.children": {
    params: {
      journals: Text;
      tenants: Text;
      tokens: Text;
      nonces: Text;
      afters: Text;
      bodies: Text;
      noteCounts: Text;
      statuses: Text;
      outcomes: Text;
      parents: Text;
      notes: Text;
      id: Whole;
    };
    row: { journal: number | null; notes: number; held: Flag | null; tenant: string | null; workflow: string };
  };
  "end_many.queued": {
    params: {
      journals: Text;
      tenants: Text;
      tokens: Text;
      nonces: Text;
      afters: Text;
      bodies: Text;
      noteCounts: Text;
      statuses: Text;
      outcomes: Text;
      id: Whole;
    };
    row: { journal: number | null; notes: number };
  };
  end_sleep_many: {
    params: {
      journals: Text;
      tenants: Text;
      tokens: Text;
      nonces: Text;
      afters: Text;
      positions: Text;
      bodies: Text;
      id: Whole;
    };
    row: { journal: number | null; notes: number };
  };
  "feed.blocker": {
    params: Record<never, never>;
    row: {
      pid: number | null;
      usename: string | null;
      application_name: string | null;
      state: string | null;
      seconds: number | null;
    };
  };
  "fence.release": {
    params: { journal: Whole; tenant: Text; token: Whole; nonce: Whole };
    row: { kind: string; tenant: string; run: number; notes: number; queue: number | null };
  };
  fire_many: {
    params: { journals: Text; tenants: Text; positions: Text; purposes: Text; bodies: Text; id: Whole };
    row: { journal: number | null; held: Flag | null; tenant: string | null; workflow: string };
  };
  "fire_many.check": {
    params: { journals: Text; tenants: Text; positions: Text; purposes: Text; id: Whole };
    row: { journal: number | null; held: Flag | null; tenant: string; workflow: string };
  };
  "journal.heads": {
    params: { journals: Text };
    row: { journal: number | null; head: number | null };
  };
  "journals.short": {
    params: { journals: Text; tenants: Text };
    row: {
      journal: number | null;
      seq: number | null;
      token: string | null;
      at: number | null;
      kind: string | null;
      body: string | null;
    };
  };
  "leases.read": {
    params: { journals: Text };
    row: {
      journal: number;
      kind: string;
      tenant: string;
      run: number;
      owner: string | null;
      label: string | null;
      reactor: string | null;
      ttl_ms: number;
      expires_at: number;
      acquired_at: number;
      reason: string | null;
      renewals: number;
      renewed_at: number;
      longest_gap_ms: number;
      progress: number;
      progress_at: number;
      progress_note: string | null;
      max_stall_ms: number | null;
      doomed: Flag;
      paused: Flag;
      stalled: Flag;
      notes: number;
      open: Flag;
      next_reactor: string | null;
      due_at: number;
      last_end_reason: string | null;
      workflow: string;
      build: string | null;
      slot: string | null;
      queue: string | null;
      token: string | null;
      nonce: string | null;
      now: number | null;
      name: string | null;
    };
  };
  "meta.promoted": {
    params: Record<never, never>;
    row: { epoch: number };
  };
  park_many: {
    params: {
      journals: Text;
      tenants: Text;
      tokens: Text;
      nonces: Text;
      afters: Text;
      bodies: Text;
      noteCounts: Text;
      endReasons: Text;
      nextReactors: Text;
      delays: Text;
      id: Whole;
    };
    row: { journal: number | null; notes: number; tenant: string | null; workflow: string };
  };
  "park_many.queued": {
    params: {
      journals: Text;
      tenants: Text;
      tokens: Text;
      nonces: Text;
      afters: Text;
      bodies: Text;
      noteCounts: Text;
      endReasons: Text;
      nextReactors: Text;
      delays: Text;
      id: Whole;
    };
    row: { journal: number | null; notes: number; tenant: string | null; workflow: string };
  };
  "queue.open": {
    params: { tenant: Text; name: Text };
    row: { id: number };
  };
  "records.append": {
    params: { kind: Text; journals: Text; seqs: Text; tokens: Text; bodies: Text };
    row: Record<never, never>;
  };
  renew_many: {
    params: {
      journals: Text;
      tenants: Text;
      tokens: Text;
      nonces: Text;
      progresses: Text;
      progressAgos: Text;
      progressNotes: Text;
    };
    row: { journal: number; tenant: string; token: string | null; nonce: string | null; notes: number; ttl_ms: number };
  };
  "renew_many.lost": {
    params: { journals: Text; tenants: Text; tokens: Text; nonces: Text };
    row: { at: number | null; token: string | null; owner: string | null; label: string | null };
  };
  "shard.assign": {
    params: { tenant: Text; shard: Whole };
    row: Record<never, never>;
  };
  "shard.identity": {
    params: Record<never, never>;
    row: { set_id: string; number: number; name: string; moves: number };
  };
  "shard.locate": {
    params: { tenant: Text };
    row: { shard: number; version: number };
  };
  "shard.moves": {
    params: { limit: Whole };
    row: { tenant: string; source: number; target: number; phase: string; by: string; reason: string; at: number };
  };
  "shard.moving": {
    params: Record<never, never>;
    row: { moves: number; tenant: string | null; state: string | null };
  };
  "shard.residence": {
    params: { tenant: Text };
    row: { state: string };
  };
  "shard.roster": {
    params: Record<never, never>;
    row: { number: number; name: string; state: string; added_at: number };
  };
  "shard.settle": {
    params: { tenant: Text };
    row: Record<never, never>;
  };
  "shard.tenants": {
    params: { above: Text; limit: Whole };
    row: { tenant: string };
  };
  spawn_many: {
    params: {
      children: Text;
      parents: Text;
      positions: Text;
      owners: Text;
      ids: Text;
      workflows: Text;
      versions: Text;
      inputHashes: Text;
      stalls: Text;
      firstBodies: Text;
      journals: Text;
      tenants: Text;
      tokens: Text;
      nonces: Text;
      afters: Text;
      seqs: Text;
      kinds: Text;
      bodies: Text;
      id: Whole;
    };
    row: { journal: number | null; notes: number };
  };
  "store.protection": {
    params: { schema: Text };
    row: {
      unprotected: string | null;
      volatile: string | null;
      forbidden: string | null;
      uncallable: string | null;
      role: string | null;
    };
  };
  "store.standbys": {
    params: Record<never, never>;
    row: { names: string | null; standbys: number | null };
  };
  stream_many: {
    params: {
      journals: Text;
      tenants: Text;
      tokens: Text;
      nonces: Text;
      opens: Text;
      max: Whole;
      runs: Text;
      writers: Text;
      streams: Text;
      retains: Text;
      afters: Text;
      offsets: Text;
      parts: Text;
      sizes: Text;
      bodies: Text;
      maxBytes: Whole;
      id: Whole;
    };
    row: { journal: number | null };
  };
  "stream_many.check": {
    params: { runs: Text; streams: Text; writers: Text; offsets: Text };
    row: { journal: number | null };
  };
  "transaction.enter": {
    params: { mark: Text; boundMs: Whole };
    row: {
      store_id: string;
      known: Flag | null;
      server: string | null;
      read_only: string | null;
      mark: string | null;
      durable: string | null;
      bound: string | null;
    };
  };
  "transaction.mark": {
    params: Record<never, never>;
    row: { mark: string | null };
  };
  "transaction.server": {
    params: Record<never, never>;
    row: { store_id: string; server: string | null };
  };
  "witness.settle": {
    params: { id: Whole };
    row: { void: Flag };
  };
}

/** And those that only SQLite has. */
export interface SqliteStatements extends SharedStatements {
  "leases.reboot": {
    params: Record<never, never>;
    row: Record<never, never>;
  };
  "meta.anchor": {
    params: { anchor: Whole };
    row: Record<never, never>;
  };
  "meta.boot": {
    params: { boot: Text; anchor: Whole };
    row: { boot: string };
  };
  "meta.file": {
    params: { file: Text };
    row: Record<never, never>;
  };
  "migrations.size": {
    params: Record<never, never>;
    row: { runs: unknown };
  };
}

export interface Statements extends PostgresStatements, SqliteStatements {}

export type StatementName = keyof Statements;

/** All parameters of a statement, by their names in camelCase. */
export type ParamsOf<N extends StatementName> = Readonly<Statements[N]["params"]>;

/** A row of a statement, by the names of its columns. */
export type RowOf<N extends StatementName> = Readonly<Statements[N]["row"]>;
