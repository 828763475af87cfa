import type { Json } from '#contracts/ports/platform.ts';
import { type ApiOptions, type ApiResult, callApi } from './api.ts';
import { type Posted, postedIn, speaksFor, updateIdOf } from './codes.ts';

/** Listens to a bot. The network gives its updates to one listener of a token, so whoever listens holds the lease. */

export interface ListenLease {
  /** Aborts when the lease is lost. */
  readonly lost: AbortSignal;
  release(): Promise<void>;
}

export interface ListenLeases {
  /** Waits for the lease of a bot. Null when the signal came first. @param botId the public part of its token */
  hold(botId: string, signal: AbortSignal): Promise<ListenLease | null>;
}

export interface Listener {
  /** A code of somebody who may speak for the chat. Durable when it resolves; a repeat does no harm. */
  posted(posted: Posted): Promise<void>;
  /** Every update, in its order, codes included. A repeat does no harm. */
  heard?(update: Json): Promise<void>;
}

export interface ListenOptions extends ApiOptions {
  readonly token: string;
  readonly leases: ListenLeases;
  readonly listener: Listener;
  /** Seconds that the network waits for an update. Default 25. */
  readonly waitSeconds?: number;
  /** Milliseconds before the next try after an error that names no time. Default 5,000. */
  readonly pauseMs?: number;
  /** Waits; ends early at the signal. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>;
}

const kinds = ['message', 'channel_post', 'my_chat_member', 'message_reaction_count'];
const perCall = 100;

export type Stopped =
  /** The signal came, or the lease is lost: the caller may listen again. */
  | { readonly kind: 'ended' }
  /** The network refuses for good: the token is dead. */
  | { readonly kind: 'refused'; readonly result: Extract<ApiResult, { readonly kind: 'refused' }> };

/** Listens until the signal. Each lease that is lost is waited for anew. */
export const listen = async (options: ListenOptions, signal: AbortSignal): Promise<Stopped> => {
  const [botId = ''] = options.token.split(':');
  while (!signal.aborted) {
    const lease = await options.leases.hold(botId, signal);
    if (lease === null) break;
    try {
      const stopped = await poll(options, AbortSignal.any([signal, lease.lost]));
      if (stopped.kind === 'refused') return stopped;
    } finally {
      await lease.release();
    }
  }
  return { kind: 'ended' };
};

/** The network keeps an update until a later call asks for those after it: what was not handled comes again. */
const poll = async (options: ListenOptions, signal: AbortSignal): Promise<Stopped> => {
  const { token, waitSeconds = 25, pauseMs = 5_000, pause } = options;
  let offset = 0;
  while (!signal.aborted) {
    const fields = {
      ...(offset === 0 ? {} : { offset }),
      ...{ limit: perCall, timeout: waitSeconds, allowed_updates: kinds },
    };
    const subject = { accountId: '', targetId: null };
    // Its answer holds codes and what strangers wrote.
    const ask = { token, method: 'getUpdates', fields, subject, isSecret: true } as const;
    const patience = AbortSignal.any([signal, AbortSignal.timeout((waitSeconds + 15) * 1_000)]);
    const result = await callApi(options, ask, patience);
    if (signal.aborted) break;
    if (result.kind === 'refused' && (result.code === 401 || result.code === 404)) return { kind: 'refused', result };
    if (result.kind !== 'ok') {
      const named = result.kind === 'refused' ? result.retryAfter : null;
      await pause(named === null ? pauseMs : Math.min(named * 1_000, 600_000), signal);
      continue;
    }
    const next = await handle(options, Array.isArray(result.result) ? result.result : [], signal);
    if (next.isStopped) await pause(pauseMs, signal);
    offset = next.offset ?? offset;
  }
  return { kind: 'ended' };
};

/** Stops at the first update that cannot be judged now, so that it comes again. */
const handle = async (
  { token, listener, ...options }: ListenOptions,
  updates: readonly Json[],
  signal: AbortSignal,
): Promise<{ readonly offset: number | null; readonly isStopped: boolean }> => {
  let offset: number | null = null;
  for (const update of updates) {
    if (signal.aborted) return { offset, isStopped: true };
    const posted = postedIn(update);
    if (posted !== null) {
      const speaks = await speaksFor(options, token, posted, signal);
      if (speaks === null) return { offset, isStopped: true };
      if (speaks) await listener.posted(posted);
    }
    await listener.heard?.(update);
    const id = updateIdOf(update);
    if (id !== null) offset = id + 1;
  }
  return { offset, isStopped: false };
};
