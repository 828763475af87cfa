/** Values of the contract's examples: one story, the same ids throughout. */

const exampleIds = {
  client: '315d0d36-9a7d-573e-8bc2-d5133b51f29b',
  account: '7d2f7f0e-6f43-5e0e-8d3c-2b6a4c1f0002',
  invite: '5e1c9b7a-2d44-5f6e-9a3b-7c8d9e0f0003',
  workspace: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0004',
} as const;

const stamps = { createdAt: '2026-01-31T08:00:00.000Z', updatedAt: '2026-01-31T08:00:00.000Z', revision: 0 };

export const exampleClient = {
  id: exampleIds.client,
  object: 'client',
  name: 'Acme',
  type: 'brand',
  defaultPostMode: 'now',
  timezone: null,
  approvalRequired: false,
  rules: {},
  brandVoice: {},
  archivedAt: null,
  accountCount: 0,
  ...stamps,
};

export const exampleAccount = {
  id: exampleIds.account,
  object: 'account',
  clientId: exampleIds.client,
  platform: 'bluesky',
  externalId: 'did:plc:ewvi7nxzyoun6zhxrhs64oiz',
  username: 'acme.example',
  displayName: 'Acme',
  avatarUrl: null,
  timezone: 'Europe/Berlin',
  status: 'connected',
  health: { state: 'ok', reason: null, checkedAt: '2026-01-31T08:00:00.000Z' },
  scopes: ['sandbox.publish', 'sandbox.read'],
  expiresAt: null,
  capabilities: {
    thread: false,
    firstComment: true,
    native: false,
    textOnly: true,
    altText: true,
    cover: false,
    aiLabel: false,
  },
  ...stamps,
};

export const exampleAgency = {
  id: exampleIds.workspace,
  object: 'agency',
  name: 'North Star Agency',
  timezone: 'Europe/Berlin',
  mode: 'live',
  members: 3,
  publishing: { status: 'on', since: null },
  limits: { requestsPerMinute: 600, requestBurst: 100, bodyBytes: 1_048_576, targetsPerPost: 500 },
  ...stamps,
};

export const exampleInvite = {
  object: 'connect_invite',
  inviteId: exampleIds.invite,
  clientId: exampleIds.client,
  url: 'https://console.example/invite/<token>',
  token: '<token>',
  platformsRequested: ['bluesky', 'threads'],
  maxAccounts: 50,
  recipientEmail: 'social@acme.example',
  accountIds: [],
  createdBy: { type: 'member', id: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0102' },
  isRevoked: false,
  expiresAt: '2026-02-02T08:00:00.000Z',
  createdAt: '2026-01-31T08:00:00.000Z',
};
