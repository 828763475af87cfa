import { approvalExample, decidedExample } from '../approvals/examples.ts';
import type { Tag } from '../call/operation.ts';
import { targetExample } from '../posts/examples.ts';

export const auditTag: Tag = {
  place: 125,
  name: 'audit',
  noun: 'post',
  about:
    'What happened, read from the stored events, and proofs that nothing was changed or left out: for auditors. Only an Owner, or an API key that an Owner gave `events.read`, reads it; no app can be given that scope.',
};

/** Values of the contract's examples of what auditors read. */

const origin = {
  actor: { type: 'apikey', id: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0201' },
  credential: { type: 'api_key', id: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0201' },
  correlationId: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0301',
  causationId: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0301',
  commandId: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0302',
};

export const entryExample = (resource: string, type: string, field: string, values: readonly [unknown, unknown]) => ({
  id: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0303',
  object: 'change',
  resource,
  resourceId: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0304',
  revision: 1,
  type,
  at: '2026-01-31T08:05:00.000Z',
  ...origin,
  reason: null,
  changes: [{ field, old: values[0], new: values[1] }],
  moreChanges: 0,
});

export const timelineExample = {
  id: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0305',
  object: 'timeline_entry',
  step: 'call',
  at: '2026-01-31T08:00:00.200Z',
  type: 'TargetNetworkCallObserved',
  revision: 0,
  attempt: 1,
  takeover: null,
  reason: null,
  actor: { type: 'service', id: 'publisher' },
  credential: null,
  correlationId: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0306',
  details: {},
  call: {
    method: 'POST',
    host: 'api.x.com',
    path: '/2/tweets',
    headers: { authorization: '…', 'content-type': 'application/json' },
    bodySha256: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
    outcome: 'answered',
    status: 201,
    reason: null,
    answer: '{"data":{"id":"1888"}}',
    calls: 1,
    startedAt: '2026-01-31T08:00:00.200Z',
    endedAt: '2026-01-31T08:00:00.512Z',
  },
};

const decided = decidedExample('approved', 'Lovely.');

export const evidenceExample = {
  id: approvalExample.id,
  object: 'approval_evidence',
  approval: decided,
  requestedAt: approvalExample.createdAt,
  requestedWith: null,
  contentHash: approvalExample.contentHash,
  recountedHash: approvalExample.contentHash,
  matches: true,
  links: [],
  decisions: [
    {
      id: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0307',
      type: 'ApprovalApproved',
      at: decided.decidedAt,
      ...origin,
      linkId: null,
      guestName: null,
      comment: 'Lovely.',
      reason: null,
    },
  ],
  targets: [
    {
      targetId: targetExample.id,
      accountId: targetExample.accountId,
      platform: targetExample.platform,
      status: 'pending',
      publishedAt: null,
      externalId: null,
      permalink: null,
      postRevision: 0,
      contentHash: approvalExample.contentHash,
      matches: true,
    },
  ],
  targetsMatch: true,
};

/** Of the feed and its proofs. */

const feedAt = '2026-01-31T08:00:00.000Z';
const postId = '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0001';

export const exampleEvent = {
  sequence: 250,
  cursor: '1.250',
  id: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0100',
  object: 'event',
  stream: `post-${postId}`,
  revision: 3,
  type: 'PostReleased',
  schemaVersion: 1,
  at: feedAt,
  occurredAt: feedAt,
  clientId: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0002',
  actor: { type: 'member', id: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0003' },
  correlationId: '3f0d6b58-6a9e-4b43-8a53-0f6f5c1a2b3c',
  causationId: '3f0d6b58-6a9e-4b43-8a53-0f6f5c1a2b3c',
  commandId: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0004',
  data: { approvalId: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0005' },
  expired: false,
};

const hash = '5H0sgj8Rcs7YTIQVxTrRV4mYnr4YIZGyXxpdXLQfMnY=';

export const exampleCheckpoint = {
  epoch: 1,
  size: 250,
  root: hash,
  kept: null,
  signedAt: feedAt,
  note: `postline/0198a5f0-7c1e-7b10-9c55-3a1d5b6e0000\n250\n${hash}\nepoch 1\nsigned ${feedAt}\n\n\u2014 postline Tm90IGEgcmVhbCBzaWduYXR1cmU=\n`,
};

export const exampleProof = {
  ...{ sequence: 250, cursor: '1.250', id: exampleEvent.id },
  hash,
  proof: [hash],
  checkpoint: exampleCheckpoint,
};
export const exampleGrowth = {
  former: { ...exampleCheckpoint, size: 200 },
  checkpoint: exampleCheckpoint,
  proof: [hash],
};
export const exampleKeys = {
  keys: [{ id: 'c2f1a0b3', verifier: `postline+c2f1a0b3+AQ${hash}`, madeAt: feedAt, retiredAt: null }],
};

export const projectionExample = {
  name: 'posts',
  object: 'projection',
  kind: 'read_model',
  position: '1.250',
  eventsBehind: 0,
  lagSeconds: 0,
  rebuilding: {
    reason: 'shape_changed',
    since: '2026-01-31T08:00:00.000Z',
    phase: 'reading',
    progress: 0.451,
    readTo: '2025-11-02T09:30:00.000Z',
  },
};
