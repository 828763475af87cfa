import { type Static, type TSchema, Type } from 'typebox';
import { Nullable, Platform, Uuid } from '#schemas/common.ts';
import { Named, said } from '#schemas/published.ts';

/** Shapes that several public events use, and the ids of the one story that their examples tell. */

export interface PublicEvent {
  readonly meaning: string;
  /** Schema of the envelope's `data`. */
  readonly data: TSchema;
  readonly example: unknown;
}

/** One public event; its example is checked against its schema by tsc here and by ajv in the tests. */
export const publicEvent = <S extends TSchema>(meaning: string, data: S, example: Static<S>) => ({
  meaning,
  data: said(data, meaning),
  example,
});

export const noClient = { clientId: Type.Null({ description: 'Always null: it belongs to no client.' }) };
export const perhapsClient = {
  clientId: said(Nullable(Uuid), 'The client that it belongs to; null where it belongs to no single client.'),
};

export const postIds = { postId: said(Uuid, 'Id of the post.'), clientId: said(Uuid, 'The client of the post.') };
export const accountIds = {
  accountId: said(Uuid, 'Id of the connected account.'),
  clientId: said(Uuid, 'The client of the account.'),
  platform: said(Platform, 'The network of the account.'),
};
export const targetIds = {
  targetId: said(Uuid, 'Id of the target.'),
  postId: said(Uuid, 'The post that it is a destination of.'),
  ...accountIds,
};

/** Of an event that the service publishes once for each occurrence: another delivery of it repeats the first. */
export const onceFor = (what: string): string => `The service publishes this event at most once for each ${what}.`;

export const Problem = Named(
  'EventFailure',
  Type.Object(
    {
      code: Type.String({
        maxLength: 100,
        description: 'Stable: branch on it. GET /errors/{code} explains it.',
        examples: ['report_too_large'],
      }),
      message: Type.String({ maxLength: 2000, description: 'What went wrong, in words for a person.' }),
    },
    { description: 'Why the work that an event reports did not succeed.' },
  ),
);

export const excerptLength = 280;
export const Excerpt = Type.String({
  maxLength: excerptLength,
  description: `The first ${excerptLength} characters of the content; where a thread has no content, of its first segment with a text.`,
});

export const example = {
  clientId: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0001',
  accountId: '7d2f7f0e-6f43-5e0e-8d3c-2b6a4c1f0002',
  inviteId: '5e1c9b7a-2d44-5f6e-9a3b-7c8d9e0f0003',
  memberId: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0005',
  postId: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0006',
  targetId: '2c9e1b7a-5d44-5f6e-9a3b-7c8d9e0f0007',
  assetId: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0008',
  approvalId: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0009',
  campaignId: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e000a',
  reportId: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e000b',
  runId: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e000c',
  webhookId: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e000d',
  refreshId: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e000e',
  workspaceId: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0010',
  apiKeyId: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0011',
  linkId: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0012',
  nextPostId: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e000f',
} as const;

const { clientId, postId, accountId, targetId } = example;
export const examplePost = { postId, clientId };
export const exampleAccount = { accountId, clientId, platform: 'bluesky' as const };
export const exampleTarget = { targetId, postId, ...exampleAccount };
export const exampleActor = { type: 'member', id: example.memberId };
export const exampleHash = 'f2ca1bb6c7e907d06dafe4687e579fce76b37e4e93b7605022da52e6ccc26fd2';

/** Instants of the examples, in order. */
export const instants = {
  asked: '2026-01-31T08:00:00.000Z',
  due: '2026-02-02T08:00:00.000Z',
  published: '2026-02-02T08:00:01.412Z',
  later: '2026-02-02T08:15:00.000Z',
  last: '2026-02-02T09:30:00.000Z',
} as const;
