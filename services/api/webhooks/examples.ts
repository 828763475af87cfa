import type { Tag } from '../call/operation.ts';

export const webhooksTag: Tag = {
  place: 110,
  name: 'webhooks',
  noun: 'webhook',
  about: 'Endpoints that receive events, their signing secrets, deliveries and replays.',
  realTime: true,
};

/** Values of the contract's examples about webhooks: one endpoint, its test and its replay. */

const at = '2026-01-31T08:00:00.000Z';
const webhookId = '8d0f3c52-4a77-5e0c-b2f4-1c9d7e5a0005';

export const exampleWebhook = {
  id: webhookId,
  object: 'webhook',
  url: 'https://hooks.agency.example/postline',
  events: ['post.published', 'target.*'],
  active: true,
  description: 'Tells the newsroom',
  clientIds: null,
  disabledReason: null,
  secretHint: 'MkU=',
  secrets: [{ createdAt: at, expiresAt: null }],
  createdAt: at,
  updatedAt: at,
  revision: 0,
};

export const exampleSecret = 'whsec_<base64 of 32 bytes>';

export const exampleDelivery = {
  id: '5b6f0b7e-3f0d-5d55-8a43-0f6f5c1a0006',
  object: 'webhook_delivery',
  webhookId,
  eventId: '2f1c7a94-6e1b-5c1e-9d61-77b2a54c0007',
  eventType: 'webhook.test',
  status: 'delivered',
  attempts: [
    {
      number: 1,
      at: '2026-01-31T08:00:00.010Z',
      trigger: 'test',
      status: 200,
      error: null,
      durationMs: 42,
      responseBody: 'ok',
    },
  ],
  nextAttemptAt: null,
  deliveredAt: '2026-01-31T08:00:00.052Z',
  replayId: null,
  createdAt: at,
  updatedAt: '2026-01-31T08:00:00.052Z',
};

export const examplePending = {
  ...exampleDelivery,
  status: 'pending',
  attempts: [],
  nextAttemptAt: at,
  deliveredAt: null,
  updatedAt: at,
};

export const exampleReplay = {
  id: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0008',
  object: 'webhook_replay',
  webhookId,
  from: '2026-01-30T00:00:00.000Z',
  to: '2026-01-31T00:00:00.000Z',
  types: ['target.published'],
  status: 'running',
  progress: 0.4,
  minted: 120,
  readTo: '2026-01-30T09:36:00.000Z',
  createdAt: at,
  updatedAt: at,
  completedAt: null,
};
