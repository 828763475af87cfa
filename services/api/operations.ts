import type { Operation } from './operation.ts';
import { approveApproval } from './operations/approveApproval.ts';
import { archiveClient } from './operations/archiveClient.ts';
import { assignCampaignPosts } from './operations/assignCampaignPosts.ts';
import { bulkCreatePosts } from './operations/bulkCreatePosts.ts';
import { bulkPostTargets } from './operations/bulkPostTargets.ts';
import { cancelPostTarget } from './operations/cancelPostTarget.ts';
import { cancelWebhookReplay } from './operations/cancelWebhookReplay.ts';
import { changeMemberRole } from './operations/changeMemberRole.ts';
import { clearPostRecycle } from './operations/clearPostRecycle.ts';
import { confirmRestoredAccount } from './operations/confirmRestoredAccount.ts';
import { createApiKey } from './operations/createApiKey.ts';
import { createApprovalLink } from './operations/createApprovalLink.ts';
import { createCampaign } from './operations/createCampaign.ts';
import { createClient } from './operations/createClient.ts';
import { createConnectInvite } from './operations/createConnectInvite.ts';
import { createPost } from './operations/createPost.ts';
import { createTeamInvite } from './operations/createTeamInvite.ts';
import { deleteCampaign } from './operations/deleteCampaign.ts';
import { deleteMedia } from './operations/deleteMedia.ts';
import { deletePost } from './operations/deletePost.ts';
import { deleteWebhook } from './operations/deleteWebhook.ts';
import { disconnectAccount } from './operations/disconnectAccount.ts';
import { getAccount } from './operations/getAccount.ts';
import { getAccountAnalytics } from './operations/getAccountAnalytics.ts';
import { getAccountCadence } from './operations/getAccountCadence.ts';
import { getAgency } from './operations/getAgency.ts';
import { getAnalyticsOverview } from './operations/getAnalyticsOverview.ts';
import { getApproval } from './operations/getApproval.ts';
import { getAsyncapi } from './operations/getAsyncapi.ts';
import { getCampaign } from './operations/getCampaign.ts';
import { getClient } from './operations/getClient.ts';
import { getClientAnalytics } from './operations/getClientAnalytics.ts';
import { getError } from './operations/getError.ts';
import { getMedia } from './operations/getMedia.ts';
import { getOpenapi } from './operations/getOpenapi.ts';
import { getPost } from './operations/getPost.ts';
import { getPostAnalytics } from './operations/getPostAnalytics.ts';
import { getPostRecycle } from './operations/getPostRecycle.ts';
import { getPostTarget } from './operations/getPostTarget.ts';
import { getQuota } from './operations/getQuota.ts';
import { getReport } from './operations/getReport.ts';
import { getReportExport } from './operations/getReportExport.ts';
import { getWebhook } from './operations/getWebhook.ts';
import { getWebhookDelivery } from './operations/getWebhookDelivery.ts';
import { getWebhookReplay } from './operations/getWebhookReplay.ts';
import { importMedia } from './operations/importMedia.ts';
import { listAccountCadences } from './operations/listAccountCadences.ts';
import { listAccounts } from './operations/listAccounts.ts';
import { listApiKeys } from './operations/listApiKeys.ts';
import { listApprovalLinks } from './operations/listApprovalLinks.ts';
import { listApprovals } from './operations/listApprovals.ts';
import { listApps } from './operations/listApps.ts';
import { listBestTimes } from './operations/listBestTimes.ts';
import { listCampaigns } from './operations/listCampaigns.ts';
import { listClients } from './operations/listClients.ts';
import { listConnectInvites } from './operations/listConnectInvites.ts';
import { listErrors } from './operations/listErrors.ts';
import { listLeftByMember } from './operations/listLeftByMember.ts';
import { listMedia } from './operations/listMedia.ts';
import { listMembers } from './operations/listMembers.ts';
import { listPostAnalytics } from './operations/listPostAnalytics.ts';
import { listPosts } from './operations/listPosts.ts';
import { listPostTargets } from './operations/listPostTargets.ts';
import { listReports } from './operations/listReports.ts';
import { listSessions } from './operations/listSessions.ts';
import { listTeamInvites } from './operations/listTeamInvites.ts';
import { listWebhookDeliveries } from './operations/listWebhookDeliveries.ts';
import { listWebhooks } from './operations/listWebhooks.ts';
import { presignMedia } from './operations/presignMedia.ts';
import { previewPost } from './operations/previewPost.ts';
import { publishPost } from './operations/publishPost.ts';
import { refreshAnalytics } from './operations/refreshAnalytics.ts';
import { registerMedia } from './operations/registerMedia.ts';
import { registerWebhook } from './operations/registerWebhook.ts';
import { rejectApproval } from './operations/rejectApproval.ts';
import { removeMember } from './operations/removeMember.ts';
import { replayWebhook } from './operations/replayWebhook.ts';
import { requestApprovalChanges } from './operations/requestApprovalChanges.ts';
import { reschedulePostTarget } from './operations/reschedulePostTarget.ts';
import { resendWebhookDelivery } from './operations/resendWebhookDelivery.ts';
import { retryPostTarget } from './operations/retryPostTarget.ts';
import { revisePost } from './operations/revisePost.ts';
import { revokeApiKey } from './operations/revokeApiKey.ts';
import { revokeApp } from './operations/revokeApp.ts';
import { revokeApprovalLink } from './operations/revokeApprovalLink.ts';
import { revokeConnectInvite } from './operations/revokeConnectInvite.ts';
import { revokeSession } from './operations/revokeSession.ts';
import { revokeTeamInvite } from './operations/revokeTeamInvite.ts';
import { rotateApiKey } from './operations/rotateApiKey.ts';
import { rotateWebhookSecret } from './operations/rotateWebhookSecret.ts';
import { runReport } from './operations/runReport.ts';
import { setPostRecycle } from './operations/setPostRecycle.ts';
import { shiftCampaign } from './operations/shiftCampaign.ts';
import { testWebhook } from './operations/testWebhook.ts';
import { unassignCampaignPosts } from './operations/unassignCampaignPosts.ts';
import { updateCampaign } from './operations/updateCampaign.ts';
import { updateClient } from './operations/updateClient.ts';
import { updatePost } from './operations/updatePost.ts';
import { updateWebhook } from './operations/updateWebhook.ts';

/** Every operation served, in the order of the contract. One file each, named like the operation. */
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
