import type { ApiKeyEvent } from '#schemas/apikey.ts';
import type { ClientNameEvent } from '#schemas/client.ts';
import type { AccountMetricsEvent, TargetMetricsEvent } from '#schemas/insights.ts';
import type { InviteEvent } from '#schemas/invite.ts';
import type { RequestEvent } from '#schemas/request.ts';
import type { Unpublished } from './rule.ts';

/** Stream kinds that publish nothing. */

const ofKeys = 'credentials are never published';
export const apikey: Unpublished<ApiKeyEvent> = { ApiKeyCreated: ofKeys, ApiKeyRotated: ofKeys, ApiKeyRevoked: ofKeys };

const ofNames = 'a step of claiming a name; events of the client show who has it';
export const clientname: Unpublished<ClientNameEvent> = { NameClaimed: ofNames, NameReleased: ofNames };

const ofInvites = 'the caller has the answer; events of the connected accounts follow';
export const invite: Unpublished<InviteEvent> = {
  ConnectInviteCreated: ofInvites,
  ConnectInviteUsed: ofInvites,
  ConnectInviteRevoked: ofInvites,
};

const ofRequests = 'a step of carrying out a call; its effects are events of other streams';
export const request: Unpublished<RequestEvent> = { RequestAccepted: ofRequests, RequestCompleted: ofRequests };

const ofFigures = 'one for each observation, which is too many; analytics.refreshed reports that figures are new';
export const targetmetrics: Unpublished<TargetMetricsEvent> = { TargetMetricsObserved: ofFigures };
export const accountmetrics: Unpublished<AccountMetricsEvent> = { AccountMetricsObserved: ofFigures };
