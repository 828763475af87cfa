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

/**
 * Of the form that such ids have: those of what a call creates, and what follows from them, are derived (version 5); a
 * member, a workspace, a key, a link and a report get a new one (version 7).
 */
export const example = {
  clientId: '315d0d36-9a7d-573e-8bc2-d5133b51f29b',
  accountId: '3f4f87e4-417f-5a84-adf3-719d1b0a2466',
  inviteId: '1aead3a6-9bb2-5915-8517-2397c2deda9e',
  memberId: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0005',
  postId: '5d53bc21-4db5-57bd-8c92-581ed4a74702',
  targetId: '4729b4ea-ca98-57d1-85dc-740aaa03bf1b',
  assetId: '7a20f124-5a55-588f-876e-55f1c1710217',
  approvalId: '987fe7f2-dce9-56b5-b2ea-8e4bf7f05885',
  campaignId: '2bd51e09-74ca-5548-9f9f-914219978137',
  reportId: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e000b',
  runId: '25506999-43cb-5b0c-af35-7476a419ca0f',
  webhookId: 'e5012398-27b6-5b2b-b2a7-6225af69f062',
  refreshId: 'a5b57b48-7a31-5acd-bcd7-86ad383d6523',
  workspaceId: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0010',
  apiKeyId: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0011',
  linkId: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0012',
  nextPostId: '9eba3a7c-3dcf-5f5a-9c12-ca975fe2983d',
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
