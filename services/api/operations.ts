// Made by `make contracts` from the operations that the files beside it export. Never edit it.

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
import { getApprovalEvidence } from './audit/evidence.ts';
import { listEvents } from './audit/feed.ts';
import {
  getAccountHistory,
  getApiKeyHistory,
  getApprovalHistory,
  getCampaignHistory,
  getClientHistory,
  getMemberHistory,
  getPostHistory,
  getWebhookHistory,
} from './audit/history.ts';
import { listProjections } from './audit/projections.ts';
import { getEventGrowth, getEventKeys, getEventProof, listEventCheckpoints } from './audit/proofs.ts';
import { getPostTargetTimeline } from './audit/timeline.ts';
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
import { getSandboxClock, moveSandboxClock } from './sandbox/clock.ts';
import { createSimulation } from './simulations/simulate.ts';
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

/** Every operation served, in the order of the contract. */
export const operations: readonly Operation[] = [
  getAgency,
  getQuota,
  getSandboxClock,
  moveSandboxClock,
  listClients,
  createClient,
  getClient,
  updateClient,
  archiveClient,
  listConnectInvites,
  createConnectInvite,
  revokeConnectInvite,
  listAccounts,
  listAccountCadences,
  getAccount,
  getAccountCadence,
  confirmRestoredAccount,
  disconnectAccount,
  listAccountOptions,
  listPosts,
  createPost,
  bulkCreatePosts,
  previewPost,
  getPost,
  updatePost,
  deletePost,
  publishPost,
  getPostRecycle,
  setPostRecycle,
  clearPostRecycle,
  revisePost,
  listPostTargets,
  bulkPostTargets,
  getPostTarget,
  cancelPostTarget,
  reschedulePostTarget,
  retryPostTarget,
  listApprovals,
  getApproval,
  approveApproval,
  listApprovalLinks,
  createApprovalLink,
  revokeApprovalLink,
  rejectApproval,
  requestApprovalChanges,
  listCampaigns,
  createCampaign,
  getCampaign,
  updateCampaign,
  deleteCampaign,
  assignCampaignPosts,
  shiftCampaign,
  unassignCampaignPosts,
  createSimulation,
  listMedia,
  registerMedia,
  importMedia,
  presignMedia,
  getMedia,
  deleteMedia,
  getAccountAnalytics,
  getClientAnalytics,
  getAnalyticsOverview,
  listPostAnalytics,
  getPostAnalytics,
  refreshAnalytics,
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
  listWebhookDeliveries,
  getWebhookDelivery,
  resendWebhookDelivery,
  replayWebhook,
  getWebhookReplay,
  cancelWebhookReplay,
  rotateWebhookSecret,
  testWebhook,
  listApiKeys,
  createApiKey,
  revokeApiKey,
  rotateApiKey,
  listApps,
  revokeApp,
  listMembers,
  removeMember,
  listLeftByMember,
  changeMemberRole,
  listSessions,
  revokeSession,
  listTeamInvites,
  createTeamInvite,
  revokeTeamInvite,
  getAccountHistory,
  getApiKeyHistory,
  getApprovalEvidence,
  getApprovalHistory,
  getCampaignHistory,
  getClientHistory,
  listEvents,
  listEventCheckpoints,
  getEventGrowth,
  getEventKeys,
  getEventProof,
  getMemberHistory,
  getPostTargetTimeline,
  getPostHistory,
  listProjections,
  getWebhookHistory,
  getAsyncapi,
  listErrors,
  getError,
  getOpenapi,
];
