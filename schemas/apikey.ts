import { Type } from 'typebox';
import { ClientIds, type EventOf, Instant, Mode, Nullable, Uuid } from './common.ts';
import { OpenEnum } from './published.ts';

/** An API key of a member. The secret itself is never here: only its SHA-256, hex. */

/** Scopes of spec 4, in the order the spec names them; `reports.manage` and `events.read` are beyond the spec. */
export const scopes = [
  'agency.read',
  'clients.read',
  'clients.manage',
  'accounts.read',
  'accounts.connect',
  'posts.read',
  'posts.compose',
  'analytics.read',
  'reports.read',
  'reports.manage',
  'besttimes.read',
  'media.read',
  'media.manage',
  'approvals.read',
  'approvals.decide',
  'campaigns.read',
  'campaigns.manage',
  'webhooks.read',
  'webhooks.manage',
  'webhooks.delete',
  'events.read',
] as const;
export type Scope = (typeof scopes)[number];

const ScopeOfKey = OpenEnum('Scope', scopes, 'A kind of operation that a credential may carry out.');

const Hash = Type.String({ pattern: '^[0-9a-f]{64}$' });
/** What may be shown of a key: `sk_live_` and its next four characters. */
const Prefix = Type.String({ minLength: 1, maxLength: 20 });

export const apikeyEvents = {
  ApiKeyCreated: Type.Object({
    memberId: Uuid,
    name: Type.String({ minLength: 1, maxLength: 200 }),
    hash: Hash,
    prefix: Prefix,
    scopes: Type.Array(ScopeOfKey, { minItems: 1 }),
    mode: Mode,
    expiresAt: Instant,
    /** Null: all clients of the workspace. */
    clientIds: Nullable(ClientIds),
  }),
  /** The former hash keeps working until `previousUntil`. */
  ApiKeyRotated: Type.Object({ hash: Hash, prefix: Prefix, previousHash: Hash, previousUntil: Instant }),
  ApiKeyRevoked: Type.Object({}),
} as const;

export type ApiKeyEvent = EventOf<typeof apikeyEvents>;
