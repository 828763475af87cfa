import type { Tag } from '../call/operation.ts';
import { postDataExample } from '../posts/examples.ts';

export const approvalsTag: Tag = {
  place: 60,
  name: 'approvals',
  noun: 'approval',
  about: 'Requests that ask a person whether a post may go out as it is.',
};

/** Values of the contract's examples of approvals. */

const [target] = postDataExample.targets;
const { content, mediaIds, variants, thread, mediaAltTexts, coverMediaId, coverFrameMs, aiDisclosure } =
  postDataExample;

export const approvalRowExample = {
  id: '7d3b0a52-6c1f-5e0d-8a94-1f2e3d4c000b',
  object: 'approval',
  createdAt: '2026-01-31T08:00:00.000Z',
  updatedAt: '2026-01-31T08:00:00.000Z',
  revision: 0,
  postId: postDataExample.id,
  clientId: postDataExample.clientId,
  status: 'pending',
  requestedBy: postDataExample.createdBy,
  decidedBy: null,
  decidedAt: null,
  comment: null,
  withdrawnReason: null,
  contentHash: '5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef',
  scheduledAt: postDataExample.scheduledAt,
};

const item = (kind: string, value: string, { id = null }: { readonly id?: string | null | undefined } = {}) => ({
  ...{ kind, platforms: [target?.platform], part: null, position: null, key: null, value, id, unsent: null },
});

export const approvalExample = {
  ...approvalRowExample,
  guestName: null,
  post: {
    ...{ content, mediaIds, variants, thread, mediaAltTexts, coverMediaId, coverFrameMs, aiDisclosure },
    schedule: postDataExample.schedule,
    scheduleMode: postDataExample.scheduleMode,
    targets: [
      {
        targetId: target?.id,
        accountId: target?.accountId,
        clientId: target?.clientId,
        platform: target?.platform,
        scheduledAt: target?.scheduledAt,
        scheduledLocal: target?.scheduledLocal,
        timezone: target?.timezone,
      },
    ],
  },
  shown: [item('account', 'acme', { id: target?.accountId }), item('text', content), item('ai_label', 'no')],
};

/** The same, decided. */
export const decidedExample = (status: string, comment: string | null) => ({
  ...approvalExample,
  status,
  decidedBy: postDataExample.createdBy,
  decidedAt: '2026-01-31T08:05:00.000Z',
  updatedAt: '2026-01-31T08:05:00.000Z',
  comment,
  revision: 1,
});

const token = `fTsKUmwfXg2KlB8uPUwAC${'A'.repeat(65)}`;

export const linkExample = {
  object: 'approval_link',
  linkId: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e000c',
  approvalId: approvalRowExample.id,
  url: `https://console.example/approval/${token}`,
  token,
  createdBy: { type: 'member', id: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0102' },
  decidedAt: null,
  isRevoked: false,
  expiresAt: '2026-02-07T08:00:00.000Z',
  createdAt: '2026-01-31T08:00:00.000Z',
};
