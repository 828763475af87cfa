import type { Pool } from 'pg';
import { isLoopback } from './oauth/client-policy.ts';
import { type AppOfInteraction, hashOf } from './oauth/tables.ts';

/** An authorization that waits for a person, as the page of consent shows it. Nothing of the app is verified. */
export interface PendingConsent {
  readonly uid: string;
  readonly clientId: string;
  /** As the app calls itself; null: it has no name. */
  readonly clientName: string | null;
  /** The host that vouches for the app by its metadata document; null: anybody may have registered it. */
  readonly documentHost: string | null;
  /** Where the code goes: a host, a program on the person's own machine, or a scheme that an installed app claims. */
  readonly redirect:
    | { readonly kind: 'host'; readonly host: string }
    | { readonly kind: 'loopback'; readonly host: string }
    | { readonly kind: 'scheme'; readonly scheme: string };
  /** The resource, as tokens name it. */
  readonly resource: string;
  readonly scopes: readonly string[];
  /** ISO 8601 instant. */
  readonly expiresAt: string;
}

const redirectOf = (uri: string): PendingConsent['redirect'] => {
  const { protocol, host, hostname } = new URL(uri);
  if (isLoopback(hostname)) return { kind: 'loopback', host };
  return protocol === 'https:' ? { kind: 'host', host } : { kind: 'scheme', scheme: protocol.slice(0, -1) };
};

interface Stored {
  readonly params: Readonly<Record<'client_id' | 'redirect_uri' | 'resource' | 'scope', string>>;
  readonly app?: AppOfInteraction;
  readonly exp: number;
}

/** The longest uid that is looked up; ours have 21 characters. */
const maxUid = 64;

/**
 * What the authorization asks for. It needs no cookie, because the page is on another host; a reader still cannot
 * finish it.
 * @param now milliseconds since the epoch
 * @returns null where it is unknown, over, or answered
 */
export const pendingConsent = async (pool: Pool, uid: string, now: number): Promise<PendingConsent | null> => {
  if (uid.length > maxUid) return null;
  const { rows } = await pool.query<{ payload: Stored }>(
    `select payload from auth.oauth_artifacts
     where model = 'Interaction' and id_hash = $1 and not payload ? 'result'`,
    [hashOf(uid)],
  );
  const payload = rows[0]?.payload;
  if (payload === undefined || payload.exp * 1_000 <= now) return null;
  const { params, app, exp } = payload;
  return {
    uid,
    clientId: params.client_id,
    clientName: app?.name ?? null,
    documentHost: app?.hasDocument === true ? new URL(params.client_id).host : null,
    redirect: redirectOf(params.redirect_uri),
    resource: params.resource,
    scopes: params.scope.split(' '),
    expiresAt: new Date(exp * 1_000).toISOString(),
  };
};
