import type { ErrorCode } from '#domain/codes.ts';
import type { Principal } from './operation.ts';

/**
 * What a credential that is limited to clients may do: one rule for each operation. An operation without a rule is
 * refused to such a credential, so that a new one leaks nothing before somebody decides.
 */

export type LimitRule =
  /** Shows nothing of any client. */
  | 'open'
  /** The ids in the path, the query and the body decide: an id of another client is an unknown id. */
  | 'ids'
  /** The list has only the rows of the clients. */
  | 'filtered'
  /** The answer is about one client: `clientId` may be left out where the credential has only one. */
  | 'one'
  /** Makes or changes an asset, which must belong to one of the clients. */
  | 'owned'
  /** Makes a thing of one client, which must be named. */
  | 'made'
  /** It concerns the whole workspace. */
  | 'refused';

export const limitRules: Readonly<Record<string, LimitRule>> = {
  getAgency: 'open',
  listClients: 'filtered',
  createClient: 'refused',
  getClient: 'ids',
  updateClient: 'ids',
  archiveClient: 'ids',
  createConnectInvite: 'ids',
  listConnectInvites: 'ids',
  revokeConnectInvite: 'ids',
  listAccounts: 'filtered',
  listAccountCadences: 'filtered',
  getAccount: 'ids',
  getAccountCadence: 'ids',
  disconnectAccount: 'ids',
  confirmRestoredAccount: 'ids',
  getQuota: 'refused',
  listPosts: 'filtered',
  createPost: 'ids',
  bulkCreatePosts: 'ids',
  previewPost: 'ids',
  getPost: 'ids',
  updatePost: 'ids',
  deletePost: 'ids',
  publishPost: 'ids',
  revisePost: 'ids',
  getPostRecycle: 'ids',
  setPostRecycle: 'ids',
  clearPostRecycle: 'ids',
  listPostTargets: 'filtered',
  getPostTarget: 'ids',
  reschedulePostTarget: 'ids',
  retryPostTarget: 'ids',
  cancelPostTarget: 'ids',
  bulkPostTargets: 'ids',
  listApprovals: 'filtered',
  getApproval: 'ids',
  approveApproval: 'ids',
  rejectApproval: 'ids',
  requestApprovalChanges: 'ids',
  createApprovalLink: 'ids',
  listApprovalLinks: 'ids',
  revokeApprovalLink: 'ids',
  listCampaigns: 'filtered',
  createCampaign: 'made',
  getCampaign: 'ids',
  updateCampaign: 'ids',
  deleteCampaign: 'ids',
  assignCampaignPosts: 'ids',
  unassignCampaignPosts: 'ids',
  shiftCampaign: 'ids',
  refreshAnalytics: 'refused',
  listMedia: 'filtered',
  presignMedia: 'owned',
  registerMedia: 'owned',
  importMedia: 'owned',
  getMedia: 'ids',
  deleteMedia: 'owned',
  getAnalyticsOverview: 'refused',
  getPostAnalytics: 'ids',
  listPostAnalytics: 'one',
  getAccountAnalytics: 'ids',
  getClientAnalytics: 'ids',
  listBestTimes: 'one',
  listReports: 'refused',
  getReport: 'refused',
  getReportExport: 'refused',
  runReport: 'refused',
  listWebhooks: 'refused',
  registerWebhook: 'refused',
  getWebhook: 'refused',
  updateWebhook: 'refused',
  deleteWebhook: 'refused',
  testWebhook: 'refused',
  rotateWebhookSecret: 'refused',
  listWebhookDeliveries: 'refused',
  getWebhookDelivery: 'refused',
  resendWebhookDelivery: 'refused',
  replayWebhook: 'refused',
  getWebhookReplay: 'refused',
  cancelWebhookReplay: 'refused',
  listApiKeys: 'refused',
  createApiKey: 'refused',
  rotateApiKey: 'refused',
  revokeApiKey: 'refused',
  listMembers: 'refused',
  listLeftByMember: 'refused',
  changeMemberRole: 'refused',
  removeMember: 'refused',
  listTeamInvites: 'refused',
  createTeamInvite: 'refused',
  revokeTeamInvite: 'refused',
  listApps: 'refused',
  revokeApp: 'refused',
  listSessions: 'refused',
  revokeSession: 'refused',
  getOpenapi: 'open',
  getAsyncapi: 'open',
  listErrors: 'open',
  getError: 'open',
};

export const limitRuleOf = (operationId: string): LimitRule => limitRules[operationId] ?? 'refused';

/** Codes with which an operation may refuse a limited credential. */
export const limitCodesOf = (operationId: string): readonly ErrorCode[] =>
  ['refused', 'owned'].includes(limitRuleOf(operationId)) ? ['client_limited'] : [];

/** As a filter of a list: nothing for a credential without a limit. */
export const withinLimit = ({ clientIds }: Pick<Principal, 'clientIds'>): { readonly clientIds?: readonly string[] } =>
  clientIds === null ? {} : { clientIds };

const listed = (...rules: readonly LimitRule[]): string =>
  Object.entries(limitRules)
    .filter(([, rule]) => rules.includes(rule))
    .map(([id]) => `\`${id}\``)
    .join(', ');

/** The table, as the contract says it. */
export const limitWords = [
  '**Limited to clients.** An API key may be limited to clients of the workspace. For such a key an id of another client, or of anything that belongs to one, is an unknown id: 404 in a path, `unknown_id` in a body, no row in a list. A post is shown where its client and all clients whose accounts it goes to are among those of the key; a target where its client and that of its post are. Media that belong to no client can be seen and used in posts; a campaign of no client is unknown to such a key.',
  `Lists have only the rows of these clients: ${listed('filtered')}. For a key of several clients, name one in \`clientId\`: ${listed('one')}. An asset must belong to one of the clients, so \`clientId\` is required where it is made, and an asset of the whole workspace is refused with \`client_limited\`: ${listed('owned')}. So it is, too, for: ${listed('made')}.`,
  `What concerns the whole workspace is refused with \`client_limited\`: ${listed('refused')}.`,
].join('\n\n');
