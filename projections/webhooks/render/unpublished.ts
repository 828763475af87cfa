import type { ApiKeyEvent } from '#schemas/apikey.ts';
import type { ClientNameEvent } from '#schemas/client.ts';
import type { AccountMetricsEvent, TargetMetricsEvent } from '#schemas/insights.ts';
import type { InviteEvent } from '#schemas/invite.ts';
import type { RequestEvent } from '#schemas/request.ts';
import type { Unpublished } from './rule.ts';

/** Stream kinds that publish nothing. */

const ofKeys = 'what opens our doors is told to nobody';
export const apikey: Unpublished<ApiKeyEvent> = { ApiKeyCreated: ofKeys, ApiKeyRotated: ofKeys, ApiKeyRevoked: ofKeys };

const ofNames = 'how a name is fought for; who holds it the client says';
export const clientname: Unpublished<ClientNameEvent> = { NameClaimed: ofNames, NameReleased: ofNames };

const ofInvites = 'the caller has the answer; what an invite leads to the account says';
export const invite: Unpublished<InviteEvent> = {
  ConnectInviteCreated: ofInvites,
  ConnectInviteUsed: ofInvites,
  ConnectInviteRevoked: ofInvites,
};

const ofRequests = 'how a call is carried out; what comes of it the other streams say';
export const request: Unpublished<RequestEvent> = { RequestAccepted: ofRequests, RequestCompleted: ofRequests };

const ofFigures = 'every look at every post is one; analytics.refreshed says when there is something to read';
export const targetmetrics: Unpublished<TargetMetricsEvent> = { TargetMetricsObserved: ofFigures };
export const accountmetrics: Unpublished<AccountMetricsEvent> = { AccountMetricsObserved: ofFigures };
