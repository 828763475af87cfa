import { setTimeout as delay } from 'node:timers/promises';
import type { ClickHouseClient } from '@clickhouse/client';
import type { Pool } from 'pg';
import type { BlobStore } from '#contracts/ports/blob-store.ts';
import type { ConnectAttempts } from '#contracts/ports/connect-attempts.ts';
import type { CredentialStore } from '#contracts/ports/credentials.ts';
import type { EventEraser, EventStore } from '#contracts/ports/event-store.ts';
import type { Log } from '#contracts/ports/log.ts';
import type { NetworkNotice } from '#contracts/ports/network-inbox.ts';
import type { PlatformAdapter } from '#contracts/ports/platform.ts';
import { lagOf, PositionWatch } from '#projections/engine/positions.ts';
import { projections } from '#projections/index.ts';
import type { DataKeys, EventCodec } from '#runtime/eventing/codec.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import type { Secrets } from '#runtime/identity/secrets.ts';
import type { Logger } from '#runtime/process/telemetry.ts';
import type { PublishingHold } from '#runtime/work/publishing-hold.ts';
import type { Platform } from '#schemas/common.ts';
import type { Operator } from '#services/workflows/provision.ts';

/** Everything that a command uses. */
export interface Admin {
  readonly operator: Operator;
  readonly store: DomainStore;
  readonly pool: Pool;
  readonly eventStore: EventStore;
  readonly eraser: EventEraser;
  readonly log: Log;
  readonly codec: EventCodec;
  readonly secrets: Secrets;
  readonly dataKeys: DataKeys & {
    destroy(clientId: string): Promise<void>;
    adopt(subject: string, key: Buffer | null): Promise<void>;
    /** Keys per version of the secret that wraps them. */
    uses(): Promise<ReadonlyMap<string, number>>;
  };
  readonly credentials: Pick<CredentialStore, 'destroyOfClient'>;
  readonly attempts: Pick<ConnectAttempts, 'destroyOfClient'>;
  /** Host of the console and of the pages behind links, without a slash at the end. */
  readonly consoleUrl: string;
  /** MEDIA_QUOTA_BYTES as this command reads it. */
  readonly mediaQuota: number;
  /** Where files of callers lie. */
  readonly blobs: Pick<BlobStore, 'put' | 'get' | 'head' | 'presignGet' | 'presignOwn' | 'delete'>;
  /** Null: this installation publishes nothing on the network. */
  readonly adapterOf: (platform: Platform) => PlatformAdapter | null;
  /** The network of our own, which reaches no person. */
  readonly sandbox: PlatformAdapter;
  /** A call of the sandbox to us, as that network signs it; null: it makes none of the kind. */
  readonly sandboxCall: (
    platform: Platform,
    said: { readonly kind: NetworkNotice['kind']; readonly person: string; readonly now: number },
  ) => {
    /** Behind the name of the network in the path. */
    readonly topic: string | null;
    readonly headers: Readonly<Record<string, string>>;
    readonly body: string;
  } | null;
  /** Whether publishing is held. */
  readonly publishing: PublishingHold;
  /** Null: nobody is there to be asked. */
  readonly confirm: ((question: string) => Promise<boolean>) | null;
  /** Null where none is configured. */
  readonly analytics: ClickHouseClient | null;
  readonly logger: Logger;
  /** Aborts at Ctrl-C. */
  readonly signal: AbortSignal;
  /** Writes a line of an answer that is too long to be held; a full pipe is waited for. */
  readonly line: (text: string) => Promise<void>;
  /** Writes a message beside the answer. */
  readonly note: (text: string) => void;
}

/** An answer, shown as lines, as a table, or as JSON. A member `secret` is shown only this once. */
export type Shown = Readonly<Record<string, unknown>>;
export type CommandOutput = Shown | readonly Shown[];

/** The arguments of a command, by the places and flags of its usage. */
export interface Given {
  /** The n-th `<…>` of the usage. */
  readonly at: (place: number) => string;
  readonly flag: (name: string) => string | undefined;
  /** Whether a flag without a value was given. */
  readonly has: (name: string) => boolean;
}

const patienceMs = 2_000;
const behind =
  'The read models are behind what is stored; they catch up when a projections process (or npm start) runs.';

/** Waits a moment for the read models before they are listed, and says so when they stay behind. */
export const caughtUp = async ({ pool, log, note }: Admin): Promise<void> => {
  const until = performance.now() + patienceMs;
  for (;;) {
    const lags = await Promise.all(projections.map(({ name }) => lagOf(pool, log, name)));
    if (lags.every((lag) => lag <= 0n)) return;
    if (performance.now() > until) return note(behind);
    await delay(20);
  }
};

/** Waits a moment until the read models show what the command stored. */
export const shown = async ({ pool, log, operator, note }: Admin): Promise<void> => {
  if (operator.positions.size === 0) return;
  const names = projections.map(({ name }) => name);
  const watch = new PositionWatch(pool, log);
  if (!(await watch.waitFor(names, operator.positions, { timeoutMs: patienceMs }))) note(behind);
};
