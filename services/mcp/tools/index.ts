import type { AnyTool } from '../tool.ts';
import { analyticsSummary, postPerformance } from './analytics.ts';
import { approvalLink, decideApproval, pendingApprovals, showApproval } from './approvals.ts';
import { bestTimes } from './best-times.ts';
import { changeCampaign, findCampaigns } from './campaigns.ts';
import { confirmAccount, connectLink, createClient, findAccounts, findClients } from './clients.ts';
import { composePost, previewPost } from './compose.ts';
import { publishDraft, revisePost } from './drafts.ts';
import { whatHappened } from './happened.ts';
import { importMedia, mediaStatus } from './media.ts';
import { findPosts, findTargets, postStatus } from './posts.ts';
import { listReports, runReport } from './reports.ts';
import { cancel, reschedule, retry } from './targets.ts';
import { whatIf } from './what-if.ts';
import { networkSettings, whoami } from './workspace.ts';

/** All tools, in the order in which a model reads them: as a post comes to be. */
export const tools: readonly AnyTool[] = [
  ...[whoami, findClients, findAccounts, networkSettings, bestTimes],
  ...[createClient, connectLink],
  ...[importMedia, mediaStatus],
  ...[previewPost, composePost, revisePost, publishDraft],
  ...[findPosts, findTargets, postStatus, reschedule, retry, cancel, confirmAccount],
  ...[findCampaigns, changeCampaign, whatIf],
  ...[pendingApprovals, showApproval, approvalLink, decideApproval],
  ...[analyticsSummary, postPerformance, listReports, runReport],
  whatHappened,
];
