/** Valid event data for tests of other things. */
import type { PostBody } from '#schemas/post.ts';
import type { Failure, PlannedTarget } from '#schemas/target.ts';

export const clientFields = {
  name: 'Acme',
  type: 'brand' as const,
  defaultPostMode: 'schedule' as const,
  timezone: 'Europe/Paris',
  approvalRequired: false,
  rules: { bannedWords: ['cheap'] },
  brandVoice: { tone: 'warm' },
};

export const campaignFields = {
  name: 'Spring',
  color: '#1f6feb',
  startsOn: '2026-03-01',
  endsOn: '2026-03-31',
  description: 'Everything green.',
};

export const postBody = (over: Partial<PostBody> = {}): PostBody => ({
  content: 'Hello, world',
  mediaIds: [],
  targetSelection: { mode: 'group', clientId: null, accountIds: null, platforms: null },
  variants: [],
  schedule: { type: 'now', scheduledAt: null, scheduledLocal: null, from: null, to: null, spreadMinutes: null },
  scheduleMode: 'managed',
  timezone: 'UTC',
  aiDisclosure: false,
  requestApproval: false,
  campaignId: null,
  thread: null,
  mediaAltTexts: null,
  coverMediaId: null,
  coverFrameMs: null,
  ...over,
});

export const planned = (
  over: Partial<PlannedTarget> & Pick<PlannedTarget, 'targetId' | 'accountId' | 'clientId'>,
): PlannedTarget => ({
  platform: 'x',
  dueAt: '2026-03-02T08:00:00.000Z',
  scheduledLocal: null,
  timezone: 'UTC',
  jitterSeconds: 0,
  scheduleMode: 'managed',
  scheduleModeReason: null,
  ...over,
});

export const failure: Failure = {
  category: 'transient',
  code: 'network_down',
  message: 'The network did not answer.',
  platformCode: null,
  platformMessage: null,
  retryable: true,
  actor: 'platform',
  mediaId: null,
};
