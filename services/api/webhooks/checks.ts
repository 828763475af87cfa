import { client } from '#domain/client.ts';
import { Rejection } from '#domain/decider.ts';
import { NotAllowed } from '#runtime/egress/guard.ts';
import { eventTypes, isKnownFilter } from '#schemas/http/webhook-events.ts';
import type { Deps } from '../call/deps.ts';
import type { Call } from '../call/operation.ts';
import { badParameter, Refusal } from '../call/refusal.ts';

/** Rules of an endpoint that a schema cannot say. */

/**
 * The refusal repeats nothing that the name server said: callers must not explore the internal network through it. A
 * name that does not resolve now is accepted; every attempt checks the address again.
 * @throws Refusal 422 `url_not_allowed`
 */
export const requireAllowedUrl = async ({ egress }: Pick<Deps, 'egress'>, url: string): Promise<void> => {
  try {
    await egress.vet(egress.checkUrl(url));
  } catch (error) {
    if (!(error instanceof NotAllowed)) throw error;
    throw new Refusal('url_not_allowed', error.message, {
      errors: [{ path: '/url', code: 'url_not_allowed', message: error.message }],
    });
  }
};

const unknownTypes = (paths: readonly string[], message: string): Refusal =>
  new Refusal('unknown_event_type', 'There is no such event type.', {
    errors: paths.map((path) => ({ path, code: 'unknown_event_type', message })),
  });

/** @throws Refusal 422 `unknown_event_type` that names each entry which matches no type. */
export const requireKnownEvents = (events: readonly string[] | undefined, path: string): void => {
  const unknown = (events ?? []).flatMap((entry, at) => (isKnownFilter(entry) ? [] : [`${path}/${at}`]));
  if (unknown.length > 0) throw unknownTypes(unknown, 'matches no event type');
};

/** One exact type, not a filter. @throws Refusal 422 `unknown_event_type` */
export const requireEventType = (type: string, path: string): void => {
  if (!eventTypes.includes(type)) throw unknownTypes([path], 'is no event type');
};

/** A filter by a type that does not exist is a mistake, not an empty list. @throws Refusal 400 `invalid_parameter` */
export const requireTypeFilter = (type: string | undefined): void => {
  if (type !== undefined && !eventTypes.includes(type)) {
    throw badParameter('eventType', 'unknown_event_type', 'is no event type');
  }
};

interface EndpointInput {
  readonly events?: readonly string[];
  readonly url?: string;
  readonly clientIds?: readonly string[] | null;
}

/**
 * What an endpoint is registered with, or changed to; an absent member is not checked.
 * @throws Rejection 422 with the code of the first check that refuses, and the faults of all
 */
export const requireEndpoint = async (
  call: Pick<Call, 'deps' | 'workspaceId'>,
  { events, url, clientIds = null }: EndpointInput,
): Promise<void> => {
  const refusals: Rejection[] = [];
  const checks = [
    async () => requireKnownEvents(events, '/events'),
    async () => (url === undefined ? undefined : requireAllowedUrl(call.deps, url)),
    async () => requireOwnClients(call, clientIds),
  ];
  for (const check of checks) {
    try {
      await check();
    } catch (error) {
      if (!(error instanceof Rejection)) throw error;
      refusals.push(error);
    }
  }
  const refusal = Rejection.ofAll(refusals);
  if (refusal !== null) throw refusal;
};

/**
 * Clients to which an endpoint is limited. Their own streams are read: a client created a moment ago is known.
 * @throws Refusal 422 that names each client which is unknown or another workspace's
 */
const requireOwnClients = async (
  { deps, workspaceId }: Pick<Call, 'deps' | 'workspaceId'>,
  clientIds: readonly string[] | null,
): Promise<void> => {
  const unknown: number[] = [];
  for (const [at, id] of (clientIds ?? []).entries()) {
    const { state, events } = await deps.store.load(client, id);
    if (state.status === 'none' || events[0]?.metadata.workspaceId !== workspaceId) unknown.push(at);
  }
  if (unknown.length === 0) return;
  throw new Refusal('validation_failed', 'The input is not valid.', {
    errors: unknown.map((at) => ({ path: `/clientIds/${at}`, code: 'unknown_id', message: 'is not known' })),
  });
};
