import type { DisableReason, WebhookEvent, WebhookFields } from '#schemas/webhook.ts';
import { type Decider, type Fact, Rejection } from './decider.ts';

/**
 * A webhook endpoint. Its law: at most five secrets sign at once, a deleted endpoint changes no more, and the sender's
 * conclusion from old failures never undoes a newer decision of a person.
 */

export interface WebhookSecret {
  /** 1 for the first; the secret is derived from the endpoint's id and this. */
  readonly generation: number;
  readonly keyVersion: string;
  readonly createdAt: string;
  /** When the secret stops signing; null for the newest. */
  readonly expiresAt: string | null;
}

export interface Replay {
  readonly from: string;
  readonly to: string;
  readonly types: readonly string[] | null;
  readonly canceled: boolean;
}

export type WebhookState =
  | { readonly status: 'none' }
  | (WebhookFields & {
      readonly status: 'live' | 'deleted';
      readonly active: boolean;
      /** Who turned it off, and why; null while it is on. */
      readonly disabled: { readonly by: 'user' | 'service'; readonly reason: DisableReason } | null;
      /** Newest first; those that expired before the last rotation are gone. */
      readonly secrets: readonly WebhookSecret[];
      /** Revision of the newest event that set the URL or turned the endpoint on. Earlier failures do not count. */
      readonly changedRevision: number;
      readonly replays: Readonly<Record<string, Replay>>;
      /** Commands carried out, the newest thousand: a repeat of one yields nothing. */
      readonly applied: readonly string[];
    });

export type LiveWebhook = Extract<WebhookState, { status: 'live' | 'deleted' }>;

export type WebhookCommand =
  | (WebhookFields & { readonly type: 'Register'; readonly keyVersion: string })
  | { readonly type: 'Update'; readonly changes: Partial<WebhookFields> & { readonly active?: boolean } }
  | {
      readonly type: 'RotateSecret';
      readonly commandId: string;
      readonly now: string;
      readonly keyVersion: string;
      /** The former secrets were of another installation: they sign no more. */
      readonly endsFormer?: true;
    }
  /** `seenRevision`: the `changedRevision` under which the failures happened. */
  | {
      readonly type: 'Disable';
      readonly reason: Exclude<DisableReason, 'requested'>;
      readonly seenRevision: number;
    }
  | { readonly type: 'Delete' }
  | { readonly type: 'RequestTest'; readonly commandId: string; readonly eventType: string }
  | {
      readonly type: 'RequestResend';
      readonly commandId: string;
      readonly deliveryId: string;
      readonly eventTime: string;
    }
  | {
      readonly type: 'RequestReplay';
      readonly commandId: string;
      readonly replayId: string;
      readonly from: string;
      readonly to: string;
      readonly types: readonly string[] | null;
    }
  | { readonly type: 'CancelReplay'; readonly replayId: string };

export const maxSecrets = 5;
/** How long the former secret goes on signing after a rotation. */
export const overlapMs = 24 * 3_600_000;
const rememberedCommands = 1_000;

/** Secrets that sign at this instant, newest first. */
export const liveSecrets = (secrets: readonly WebhookSecret[], now: string): readonly WebhookSecret[] =>
  secrets.filter(({ expiresAt }) => expiresAt === null || expiresAt > now);

/** Secrets after a rotation at this instant: the newest first, then those that still sign, each with its end. */
export const rotated = (
  secrets: readonly WebhookSecret[],
  { generation, keyVersion, previousExpiresAt }: Extract<WebhookEvent, { type: 'WebhookSecretRotated' }>['data'],
  at: string,
): readonly WebhookSecret[] => [
  { generation, keyVersion, createdAt: at, expiresAt: null },
  ...liveSecrets(secrets, at).map((one) => ({ ...one, expiresAt: one.expiresAt ?? previousExpiresAt })),
];

const live = (state: WebhookState): LiveWebhook => {
  if (state.status !== 'live') throw new Rejection('not_found', 'There is no such webhook.');
  return state;
};

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

/** Each client once. */
const limitOf = (clientIds: readonly string[] | null): string[] | null =>
  clientIds === null ? null : [...new Set(clientIds)];

const update = (command: Extract<WebhookCommand, { type: 'Update' }>, state: LiveWebhook): readonly WebhookEvent[] => {
  const { active, events: named, clientIds, ...others } = command.changes;
  const fields = {
    ...others,
    ...(named === undefined ? {} : { events: [...new Set(named)] }),
    ...(clientIds === undefined ? {} : { clientIds: limitOf(clientIds) }),
  };
  const changed = Object.fromEntries(
    Object.entries(fields).filter(([name, value]) => !same(value, state[name as keyof WebhookFields])),
  ) as Partial<WebhookFields>;
  const events: WebhookEvent[] = Object.keys(changed).length === 0 ? [] : [{ type: 'WebhookUpdated', data: changed }];
  if (active === true && !state.active) events.push({ type: 'WebhookEnabled', data: {} });
  if (active === false && state.active) {
    events.push({ type: 'WebhookDisabled', data: { by: 'user', reason: 'requested' } });
  }
  return events;
};

const rotate = (
  command: Extract<WebhookCommand, { type: 'RotateSecret' }>,
  state: LiveWebhook,
): readonly WebhookEvent[] => {
  if (command.endsFormer !== true && liveSecrets(state.secrets, command.now).length >= maxSecrets) {
    throw new Rejection('too_many_secrets', `At most ${maxSecrets} secrets sign at once: wait until one expires.`);
  }
  const generation = (state.secrets[0]?.generation ?? 0) + 1;
  const overlap = command.endsFormer === true ? 0 : overlapMs;
  const previousExpiresAt = new Date(Date.parse(command.now) + overlap).toISOString();
  return [{ type: 'WebhookSecretRotated', data: { generation, keyVersion: command.keyVersion, previousExpiresAt } }];
};

const decide = (command: WebhookCommand, state: WebhookState): readonly WebhookEvent[] => {
  if (command.type === 'Register') {
    if (state.status !== 'none') return [];
    const { url, events, description, clientIds, keyVersion } = command;
    const fields = { url, events: [...new Set(events)], description, clientIds: limitOf(clientIds) };
    return [{ type: 'WebhookRegistered', data: { ...fields, keyVersion } }];
  }
  if (command.type === 'Delete') {
    if (state.status === 'none') throw new Rejection('not_found', 'There is no such webhook.');
    return state.status === 'deleted' ? [] : [{ type: 'WebhookDeleted', data: {} }];
  }
  if (command.type === 'Disable') {
    if (state.status !== 'live' || !state.active || state.changedRevision > command.seenRevision) return [];
    return [{ type: 'WebhookDisabled', data: { by: 'service', reason: command.reason } }];
  }
  const known = live(state);
  if ('commandId' in command && known.applied.includes(command.commandId)) return [];
  switch (command.type) {
    case 'Update':
      return update(command, known);
    case 'RotateSecret':
      return rotate(command, known);
    case 'RequestTest':
      return [{ type: 'WebhookTestRequested', data: { eventType: command.eventType } }];
    case 'RequestResend': {
      const { deliveryId, eventTime } = command;
      return [{ type: 'WebhookResendRequested', data: { deliveryId, eventTime } }];
    }
    case 'RequestReplay': {
      const { replayId, from, to, types } = command;
      const data = { replayId, from, to, types: types === null ? null : [...types] };
      return [{ type: 'WebhookReplayRequested', data }];
    }
    case 'CancelReplay': {
      const replay = known.replays[command.replayId];
      if (replay === undefined) throw new Rejection('not_found', 'There is no such replay.');
      return replay.canceled ? [] : [{ type: 'WebhookReplayCanceled', data: { replayId: command.replayId } }];
    }
  }
};

const evolve = (state: WebhookState, event: WebhookEvent, fact: Fact): WebhookState => {
  if (event.type === 'WebhookRegistered') {
    const { keyVersion, ...fields } = event.data;
    return {
      ...fields,
      status: 'live',
      active: true,
      disabled: null,
      secrets: [{ generation: 1, keyVersion, createdAt: fact.occurredAt, expiresAt: null }],
      changedRevision: fact.revision,
      replays: {},
      applied: [],
    };
  }
  if (state.status === 'none') return state;
  const applied = [...state.applied, fact.commandId].slice(-rememberedCommands);
  switch (event.type) {
    case 'WebhookUpdated': {
      const moved = event.data.url !== undefined;
      return { ...state, ...event.data, ...(moved ? { changedRevision: fact.revision } : {}) };
    }
    case 'WebhookSecretRotated':
      return { ...state, secrets: rotated(state.secrets, event.data, fact.occurredAt), applied };
    case 'WebhookDisabled':
      return { ...state, active: false, disabled: event.data };
    case 'WebhookEnabled':
      return { ...state, active: true, disabled: null, changedRevision: fact.revision };
    case 'WebhookDeleted':
      return { ...state, status: 'deleted', active: false };
    case 'WebhookReplayRequested': {
      const { replayId, ...asked } = event.data;
      return { ...state, replays: { ...state.replays, [replayId]: { ...asked, canceled: false } }, applied };
    }
    case 'WebhookReplayCanceled': {
      const replay = state.replays[event.data.replayId];
      if (replay === undefined) return state;
      return { ...state, replays: { ...state.replays, [event.data.replayId]: { ...replay, canceled: true } } };
    }
    case 'WebhookTestRequested':
    case 'WebhookResendRequested':
      return { ...state, applied };
  }
};

export const webhook: Decider<WebhookState, WebhookCommand, WebhookEvent> = {
  kind: 'webhook',
  initial: { status: 'none' },
  decide,
  evolve,
};
