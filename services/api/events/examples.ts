import type { Tag } from '../call/operation.ts';

export const auditTag: Tag = {
  place: 120,
  name: 'audit',
  noun: 'event',
  about: 'Every event of the workspace in one order without a gap, and proofs that nothing was changed or left out.',
};

const at = '2026-01-31T08:00:00.000Z';
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
  at,
  occurredAt: at,
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
  signedAt: at,
  note: `postline/0198a5f0-7c1e-7b10-9c55-3a1d5b6e0000\n250\n${hash}\nepoch 1\nsigned ${at}\n\n\u2014 postline Tm90IGEgcmVhbCBzaWduYXR1cmU=\n`,
};

export const exampleProof = { sequence: 250, hash, proof: [hash], checkpoint: exampleCheckpoint };
export const exampleGrowth = {
  former: { ...exampleCheckpoint, size: 200 },
  checkpoint: exampleCheckpoint,
  proof: [hash],
};
export const exampleKeys = {
  keys: [{ id: 'c2f1a0b3', verifier: `postline+c2f1a0b3+AQ${hash}`, madeAt: at, retiredAt: null }],
};
