import type { Tag } from '../call/operation.ts';

export const postsTag: Tag = {
  place: 40,
  name: 'posts',
  noun: 'post',
  about: 'Posts, each composed once and sent to many accounts.',
};
export const postTargetsTag: Tag = {
  place: 50,
  name: 'post-targets',
  noun: 'post target',
  about: 'The destinations of a post: one target for each account.',
};

/** One story in all examples: a brand's post that goes to one account on x. */

const ids = {
  client: '5b1c5d5e-8a49-5d0c-9d0b-0f8a6a1f2a10',
  account: '0f5a7a3c-91be-5f0e-8f5e-0f6a9a3c1b22',
  post: '7d2f1c9e-3a64-5c2b-8a3e-6a9f0f1d4c33',
  target: '9a8b7c6d-5e4f-5a3b-8c2d-1e0f9a8b7c44',
};
const created = '2026-11-21T10:00:00.000Z';
const due = '2027-12-01T08:00:00.000Z';

export const targetExample = {
  id: ids.target,
  object: 'post_target',
  postId: ids.post,
  clientId: ids.client,
  accountId: ids.account,
  platform: 'x',
  status: 'pending',
  scheduledAt: due,
  scheduledLocal: '2027-12-01T09:00',
  timezone: 'Europe/Berlin',
  jitterSeconds: 0,
  scheduleMode: 'managed',
  scheduleModeReason: null,
  attempts: 0,
  publishedAt: null,
  externalId: null,
  permalink: null,
  segments: [],
  failure: null,
  retryAt: null,
  unknownSince: null,
  processingUntil: null,
  firstComment: null,
  firstCommentExternalId: null,
  firstCommentIssue: null,
  afterStepIssues: [],
  title: null,
  undo: null,
  cancelReason: null,
  content: 'Our winter menu is here.',
  mediaIds: [],
  overrides: {},
  createdAt: created,
  updatedAt: created,
  revision: 0,
};

export const postRowExample = {
  id: ids.post,
  object: 'post',
  clientId: ids.client,
  status: 'scheduled',
  content: 'Our winter menu is here. Book a table: https://example.com/winter',
  mediaIds: [],
  targetSelection: { mode: 'group', clientId: ids.client, accountIds: null, platforms: ['x'] },
  schedule: {
    type: 'at',
    scheduledAt: null,
    scheduledLocal: '2027-12-01T09:00',
    from: null,
    to: null,
    spreadMinutes: null,
  },
  scheduleMode: 'managed',
  timezone: 'Europe/Berlin',
  aiDisclosure: false,
  requestApproval: false,
  campaignId: null,
  externalRef: null,
  thread: null,
  mediaAltTexts: null,
  coverMediaId: null,
  coverFrameMs: null,
  scheduledAt: due,
  publishedAt: null,
  createdBy: { type: 'apikey', id: '3c9e6679-7425-40de-944b-e07fc1f90ae7' },
  approvalId: null,
  lastDecision: null,
  recycledFrom: null,
  counts: { total: 1, pending: 1 },
  createdAt: created,
  updatedAt: created,
  revision: 0,
};

const variants = [
  { platform: 'x', contentOverride: 'Our winter menu is here.', mediaIdsOverride: null, overrides: {} },
];

export const postDataExample = { ...postRowExample, variants, pendingRevision: null, targets: [targetExample] };

const composed = {
  content: postRowExample.content,
  targets: { mode: 'group', clientId: ids.client, platforms: ['x'] },
  variants: [{ platform: 'x', contentOverride: 'Our winter menu is here.' }],
  schedule: { type: 'at', scheduledLocal: '2027-12-01T09:00' },
  timezone: 'Europe/Berlin',
};

export const postExample = { body: { clientId: ids.client, ...composed }, data: postDataExample };

export const bulkTargetsExample = {
  body: { action: 'reschedule', targetIds: [ids.target, ids.account], shiftMinutes: 30 },
  data: {
    object: 'post_target_bulk_result',
    results: [
      { targetId: ids.target, ok: true, target: { ...targetExample, revision: 1 } },
      {
        targetId: ids.account,
        ok: false,
        error: {
          type: 'https://api.example/v1/errors/not_found',
          title: 'The resource does not exist',
          status: 404,
          code: 'not_found',
          category: 'request',
          detail: 'There is no such post target.',
          correlationId: '3f0d6b58-6a9e-4b43-8a53-0f6f5c1a2b3c',
        },
      },
    ],
  },
};

export const bulkExample = {
  body: { posts: [postExample.body, { ...postExample.body, content: '' }] },
  data: {
    object: 'post_bulk_result',
    results: [
      { index: 0, status: 'created', post: postDataExample },
      {
        index: 1,
        status: 'rejected',
        error: {
          type: 'https://api.example/v1/errors/validation_failed',
          title: 'The input is not valid',
          status: 422,
          code: 'validation_failed',
          category: 'request',
          detail: 'The input is not valid.',
          correlationId: '3f0d6b58-6a9e-4b43-8a53-0f6f5c1a2b3c',
          errors: [{ path: '/content', code: 'empty', message: 'a post needs text or media' }],
        },
      },
    ],
    created: 1,
    rejected: 1,
  },
};

export const previewExample = {
  body: postExample.body,
  data: {
    object: 'post_preview',
    valid: true,
    problems: [],
    approvalRequired: false,
    warnings: [],
    verdicts: [
      {
        platform: 'x',
        accountId: ids.account,
        ok: true,
        errors: [],
        warnings: [],
        text: 'Our winter menu is here.',
        title: null,
        length: { used: 24, limit: 280 },
        terms: [],
        media: [],
        scheduledAt: due,
        latestAt: due,
        scheduleMode: 'managed',
        scheduleModeReason: null,
      },
    ],
    quota: { limit: null, remaining: null, needed: 1 },
    cadence: null,
  },
};

const draft = { status: 'draft', scheduledAt: null, counts: { total: 0 }, targets: [] };
export const draftExample = { body: composed, data: { ...postDataExample, ...draft, revision: 1 } };

export const recycleExample = {
  object: 'recycle',
  postId: postDataExample.id,
  enabled: true,
  everyDays: 30,
  times: 3,
  until: null,
  nextAt: '2026-03-02T08:00:00.000Z',
  posted: 0,
  stoppedReason: null,
  revision: 4,
};

export const clearedRecycleExample = {
  ...recycleExample,
  ...{ enabled: false, everyDays: null, times: null, nextAt: null, posted: 1, revision: 7 },
};
