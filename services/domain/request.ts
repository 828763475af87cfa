import type { RequestEvent } from '#schemas/request.ts';
import { type Decider, Rejection } from './decider.ts';

/**
 * A call with an Idempotency-Key that creates no stream. Its law: the values that were accepted first are carried out,
 * however often the call is repeated; a refusal frees the key.
 */

export type RequestState =
  | { readonly status: 'free' }
  | {
      readonly status: 'accepted';
      readonly commandId: string;
      readonly operation: string;
      readonly fingerprint: string;
      readonly decided: unknown;
      readonly acceptedAt: string;
    }
  | {
      readonly status: 'done';
      readonly commandId: string;
      readonly operation: string;
      readonly fingerprint: string;
      readonly decided: unknown;
      readonly result: unknown;
    };

export type RequestCommand =
  | { readonly type: 'Accept'; readonly operation: string; readonly fingerprint: string; readonly decided: unknown }
  | { readonly type: 'Complete'; readonly commandId: string; readonly result: unknown }
  | { readonly type: 'Refuse'; readonly commandId: string };

const decide = (command: RequestCommand, state: RequestState): readonly RequestEvent[] => {
  switch (command.type) {
    case 'Accept': {
      if (state.status !== 'free') {
        if (state.fingerprint === command.fingerprint) return [];
        throw new Rejection('idempotency_key_reused', 'This Idempotency-Key was used with another request.');
      }
      const { operation, fingerprint, decided } = command;
      return [{ type: 'RequestAccepted', data: { operation, fingerprint, decided } }];
    }
    case 'Complete':
      if (state.status !== 'accepted' || state.commandId !== command.commandId) return [];
      return [{ type: 'RequestCompleted', data: { outcome: 'done', result: command.result } }];
    case 'Refuse':
      if (state.status !== 'accepted' || state.commandId !== command.commandId) return [];
      return [{ type: 'RequestCompleted', data: { outcome: 'refused' } }];
  }
};

const evolve = (
  state: RequestState,
  event: RequestEvent,
  fact: { readonly eventId: string; readonly occurredAt: string },
): RequestState => {
  if (event.type === 'RequestAccepted') {
    return { status: 'accepted', commandId: fact.eventId, ...event.data, acceptedAt: fact.occurredAt };
  }
  if (state.status !== 'accepted') return state;
  if (event.data.outcome === 'refused') return { status: 'free' };
  const { commandId, operation, fingerprint, decided } = state;
  return { status: 'done', commandId, operation, fingerprint, decided, result: event.data.result };
};

export const request: Decider<RequestState, RequestCommand, RequestEvent> = {
  kind: 'request',
  initial: { status: 'free' },
  decide,
  evolve,
};
