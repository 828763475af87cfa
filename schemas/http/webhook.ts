import { type TSchema, Type } from 'typebox';
import { Instant, Nullable, Platform, Uuid } from '#schemas/common.ts';
import { Failure } from '#schemas/target.ts';

/** What is published to webhook endpoints, by type: the `data` of the envelope. Types are added, never changed. */

export const Envelope = (type: string, data: TSchema) =>
  Type.Object({
    id: Type.String({ format: 'uuid', description: 'Stable through retries, resends and replays: dedupe on it.' }),
    type: Type.Literal(type),
    created: Instant,
    data,
  });

const client = { clientId: Uuid };
const account = { accountId: Uuid, clientId: Uuid, platform: Platform };
const post = { postId: Uuid, clientId: Uuid };
const target = { targetId: Uuid, postId: Uuid, accountId: Uuid, clientId: Uuid, platform: Platform };

interface Published {
  readonly meaning: string;
  readonly data: TSchema;
}

export const webhookEvents: Readonly<Record<string, Published>> = {
  'client.created': { meaning: 'A client was created.', data: Type.Object({ ...client, name: Type.String() }) },
  'client.updated': {
    meaning: 'A client was changed.',
    data: Type.Object({ ...client, changed: Type.Array(Type.String({ description: 'Names of the members.' })) }),
  },
  'client.archived': { meaning: 'A client was archived.', data: Type.Object(client) },
  'account.connected': { meaning: 'An account was connected.', data: Type.Object(account) },
  'account.reauthorized': { meaning: 'An account works again.', data: Type.Object(account) },
  'account.reauth_required': {
    meaning: 'A connected account needs reauthorization; said once per lapse.',
    data: Type.Object({ ...account, reason: Type.String() }),
  },
  'account.disconnected': {
    meaning: 'An account was disconnected.',
    data: Type.Object({ ...account, reason: Type.String() }),
  },
  'post.published': {
    meaning: 'Every target of a post is published.',
    data: Type.Object({ ...post, publishedAt: Instant }),
  },
  'post.partially_published': {
    meaning: 'All targets are settled, some of them failed; said once per post.',
    data: Type.Object({ ...post, publishedAt: Instant }),
  },
  'post.failed': { meaning: 'All targets are settled, none was published.', data: Type.Object(post) },
  'post.canceled': {
    meaning: 'Every target was canceled; said once per post.',
    data: Type.Object({ ...post, reason: Type.String() }),
  },
  'target.published': {
    meaning: 'A target was published.',
    data: Type.Object({
      ...target,
      externalId: Type.String(),
      permalink: Nullable(Type.String()),
      publishedAt: Instant,
    }),
  },
  'target.failed': { meaning: 'A target failed.', data: Type.Object({ ...target, failure: Failure }) },
};
