import { confirmRestoredAccount, disconnectAccount, getAccount, listAccounts } from './accounts/accounts.ts';
import { getAccountCadence, listAccountCadences } from './accounts/cadence.ts';
import { listAccountOptions } from './accounts/options.ts';
import { getAgency, getQuota } from './agency.ts';
import { getAccountAnalytics, getAnalyticsOverview, getClientAnalytics } from './analytics/board.ts';
import { getPostAnalytics, listPostAnalytics } from './analytics/posts.ts';
import { refreshAnalytics } from './analytics/refreshed.ts';
import { listBestTimes } from './analytics/slots.ts';
import { approveApproval, rejectApproval, requestApprovalChanges } from './approvals/decide.ts';
import { createApprovalLink, listApprovalLinks, revokeApprovalLink } from './approvals/links.ts';
import { getApproval, listApprovals } from './approvals/show.ts';
import type { Operation } from './call/operation.ts';
import { assignCampaignPosts, unassignCampaignPosts } from './campaigns/assign.ts';
import { shiftCampaign } from './campaigns/shift.ts';
import { createCampaign, deleteCampaign, getCampaign, listCampaigns, updateCampaign } from './campaigns/show.ts';
import { archiveClient, createClient, getClient, listClients, updateClient } from './clients/clients.ts';
import { createConnectInvite, listConnectInvites, revokeConnectInvite } from './clients/invite.ts';
import { createApiKey, listApiKeys, revokeApiKey, rotateApiKey } from './console/api-keys.ts';
import { listApps, revokeApp } from './console/apps.ts';
import { listLeftByMember } from './console/left.ts';
import { listSessions, revokeSession } from './console/sessions.ts';
import {
  changeMemberRole,
  createTeamInvite,
  listMembers,
  listTeamInvites,
  removeMember,
  revokeTeamInvite,
} from './console/team.ts';
import { importMedia, presignMedia, registerMedia } from './media/register.ts';
import { deleteMedia, getMedia, listMedia } from './media/show.ts';
import { bulkCreatePosts } from './posts/bulk.ts';
import { bulkPostTargets } from './posts/bulk-targets.ts';
import { createPost, updatePost } from './posts/create.ts';
import { deletePost } from './posts/delete.ts';
import { getPostTarget, listPostTargets } from './posts/load.ts';
import { previewPost } from './posts/preview.ts';
import { publishPost } from './posts/publish.ts';
import { clearPostRecycle, getPostRecycle, setPostRecycle } from './posts/recycle.ts';
import { revisePost } from './posts/revise.ts';
import { getPost, listPosts } from './posts/shown.ts';
import { cancelPostTarget, reschedulePostTarget, retryPostTarget } from './posts/target-actions.ts';
import { getAsyncapi, getError, getOpenapi, listErrors } from './reference.ts';
import { getReport, getReportExport, listReports, runReport } from './reports/show.ts';
import {
  getWebhookDelivery,
  listWebhookDeliveries,
  resendWebhookDelivery,
  testWebhook,
} from './webhooks/deliveries.ts';
import {
  deleteWebhook,
  getWebhook,
  listWebhooks,
  registerWebhook,
  rotateWebhookSecret,
  updateWebhook,
} from './webhooks/endpoints.ts';
import { cancelWebhookReplay, getWebhookReplay, replayWebhook } from './webhooks/replays.ts';

/** Every operation served, in the order of the contract. Each stands in the folder of its noun, beside what it does. */
export const operations: readonly Operation[] = [
  getAgency,
  listClients,
  createClient,
  getClient,
  updateClient,
  archiveClient,
  createConnectInvite,
  listConnectInvites,
  revokeConnectInvite,
  listAccounts,
  listAccountCadences,
  getAccount,
  getAccountCadence,
  listAccountOptions,
  disconnectAccount,
  confirmRestoredAccount,
  getQuota,
  listPosts,
  createPost,
  bulkCreatePosts,
  previewPost,
  getPost,
  updatePost,
  deletePost,
  revisePost,
  publishPost,
  getPostRecycle,
  setPostRecycle,
  clearPostRecycle,
  listPostTargets,
  bulkPostTargets,
  getPostTarget,
  reschedulePostTarget,
  retryPostTarget,
  cancelPostTarget,
  listApprovals,
  getApproval,
  approveApproval,
  rejectApproval,
  requestApprovalChanges,
  createApprovalLink,
  listApprovalLinks,
  revokeApprovalLink,
  listCampaigns,
  createCampaign,
  getCampaign,
  updateCampaign,
  deleteCampaign,
  assignCampaignPosts,
  unassignCampaignPosts,
  shiftCampaign,
  refreshAnalytics,
  listMedia,
  presignMedia,
  registerMedia,
  importMedia,
  getMedia,
  deleteMedia,
  getAnalyticsOverview,
  getPostAnalytics,
  listPostAnalytics,
  getAccountAnalytics,
  getClientAnalytics,
  listBestTimes,
  listReports,
  getReport,
  getReportExport,
  runReport,
  listWebhooks,
  registerWebhook,
  getWebhook,
  updateWebhook,
  deleteWebhook,
  testWebhook,
  rotateWebhookSecret,
  listWebhookDeliveries,
  getWebhookDelivery,
  resendWebhookDelivery,
  replayWebhook,
  getWebhookReplay,
  cancelWebhookReplay,
  listApiKeys,
  createApiKey,
  rotateApiKey,
  revokeApiKey,
  listMembers,
  listLeftByMember,
  changeMemberRole,
  removeMember,
  listTeamInvites,
  createTeamInvite,
  revokeTeamInvite,
  listApps,
  revokeApp,
  listSessions,
  revokeSession,
  getOpenapi,
  getAsyncapi,
  listErrors,
  getError,
];
