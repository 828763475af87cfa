// The main job through a C# client by NSwag: a webhook, a client, four accounts, a photo, a post with its targets, figures,
// events, and an error.
//
//     nswag openapi2csclient /input:https://<host>/v1/openapi.json /output:Client.cs /classname:PostlineClient
//       /namespace:Postline /generateOptionalParameters:true /parameterDateTimeFormat:o
using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Net.Http;
using System.Net.Http.Headers;
using System.Threading;
using System.Threading.Tasks;
using Newtonsoft.Json;
using Newtonsoft.Json.Linq;
using Postline;

static string Setting(string name) =>
    Environment.GetEnvironmentVariable(name) ?? throw new InvalidOperationException($"set {name}");

static void Check(bool holds, string what)
{
    if (!holds) throw new InvalidOperationException($"not so: {what}");
    Console.WriteLine($"ok  {what}");
}

static async Task<Value> Eventually<Value>(string what, Func<Task<Value>> look)
    where Value : class
{
    for (var until = DateTime.UtcNow.AddMinutes(1); DateTime.UtcNow < until; await Task.Delay(150))
    {
        var value = await look();
        if (value != null) return value;
    }
    throw new InvalidOperationException($"not within a minute: {what}");
}

// What the server refused a call with.
static async Task<Problem> ProblemOf(Func<Task> call)
{
    try
    {
        await call();
    }
    catch (ApiException<Problem> refusal)
    {
        return refusal.Result;
    }
    throw new InvalidOperationException("the server did not refuse");
}

// Every POST that creates something takes a key: a repeat with the same key creates nothing.
static string Key() => Guid.NewGuid().ToString();

var replays = new Replays();
var http = new HttpClient(replays);
http.DefaultRequestHeaders.Authorization = new AuthenticationHeaderValue("Bearer", Setting("POSTLINE_KEY"));
var postline = new PostlineClient(http) { BaseUrl = Setting("POSTLINE_URL") };
var plain = new HttpClient(new HttpClientHandler { AllowAutoRedirect = false });
var receiver = Setting("POSTLINE_RECEIVER");
var platforms = new[] { "x", "bluesky", "instagram", "pinterest" };

var wanted = new WebhookCreate { Url = receiver, Events = new[] { "post.published", "target.published" } };
var webhook = (await postline.RegisterWebhookAsync(idempotency_Key: Key(), body: wanted)).Data;
Check(webhook.Secret != null, "a webhook shows its secret once");
var sent = (await postline.TestWebhookAsync(id: webhook.Id)).Data;
Check(sent.Id != Guid.Empty, "an optional body may be left out");

var once = Key();
var body = new ClientCreate { Name = $"Northwind {once[..8]}", Type = "brand", Timezone = "Europe/Berlin" };
var client = (await postline.CreateClientAsync(idempotency_Key: once, body: body)).Data;
Check(client.Name == body.Name && client.Type == "brand", "a client is created");
var again = (await postline.CreateClientAsync(idempotency_Key: once, body: body)).Data;
Check(again.Id == client.Id, "the same key answers the same client");
Check(replays.Last == "true", "and says that it is a replay");
var renamed = (await postline.UpdateClientAsync(id: client.Id, body: new ClientUpdate { Name = $"{body.Name} Ltd" })).Data;
Check(renamed.Type == "brand" && renamed.Timezone == "Europe/Berlin", "a new name changes nothing else");

var wish = new ConnectInviteCreate { Platforms = platforms, ExpiresInHours = 1 };
var invite = (await postline.CreateConnectInviteAsync(id: client.Id, idempotency_Key: Key(), body: wish)).Data;
foreach (var platform in platforms)
{
    // What the invite page sends when a brand connects its account.
    var form = new Dictionary<string, string> { ["platform"] = platform, ["username"] = "northwind", ["timezone"] = "" };
    var answer = await plain.PostAsync(invite.Url.ToString(), new FormUrlEncodedContent(form));
    Check((int)answer.StatusCode == 303, $"the invite page connects {platform}");
}

var accounts = await Eventually("four accounts on two pages", async () =>
{
    var found = new List<Account>();
    string cursor = null;
    do
    {
        var page = await postline.ListAccountsAsync(clientId: client.Id, limit: 2, cursor: cursor);
        found.AddRange(page.Data);
        cursor = page.Page.NextCursor;
    } while (cursor != null);
    return found.Count == platforms.Length ? found : null;
});
Check(accounts.Select(one => one.Id).Distinct().Count() == platforms.Length, "a cursor leads through all accounts");

var photo = await File.ReadAllBytesAsync(Setting("POSTLINE_PHOTO"));
var offer = new MediaPresign
{
    FileName = "coffee.jpg", ContentType = "image/jpeg", Bytes = photo.Length, ClientId = client.Id,
};
var upload = (await postline.PresignMediaAsync(idempotency_Key: Key(), body: offer)).Data;
var put = new HttpRequestMessage(HttpMethod.Put, upload.Url.ToString()) { Content = new ByteArrayContent(photo) };
foreach (var (name, value) in upload.Headers)
{
    if (!put.Headers.TryAddWithoutValidation(name, value)) put.Content.Headers.TryAddWithoutValidation(name, value);
}
Check((await plain.SendAsync(put)).IsSuccessStatusCode, "the presigned URL takes the file");
var register = new MediaRegister { AssetId = upload.AssetId, ClientId = client.Id, AltText = "An espresso" };
await postline.RegisterMediaAsync(idempotency_Key: Key(), body: register);
await Eventually("the photo is publishable", async () =>
{
    var media = (await postline.GetMediaAsync(id: upload.AssetId)).Data;
    return media.Publishable ? media : null;
});

var link = new Uri("https://northwind.example/winter");
var group = new TargetSelectionInput { Mode = "group", ClientId = client.Id };
var compose = new PostCreate
{
    ClientId = client.Id,
    Content = "Winter menu is here.",
    Targets = group,
    MediaIds = new[] { upload.AssetId },
    Variants = new[]
    {
        new VariantInput { Platform = "x", ContentOverride = $"Winter menu: {link}" },
        new VariantInput { Platform = "bluesky", Overrides = new NetworkOverrides { Link = link } },
        new VariantInput
        {
            Platform = "pinterest",
            Overrides = new NetworkOverrides { BoardId = "918273645", Title = "Winter menu", Link = link },
        },
    },
    Schedule = new ScheduleInput { Type = "at", ScheduledAt = DateTimeOffset.UtcNow.AddHours(1) },
};
var post = (await postline.CreatePostAsync(idempotency_Key: Key(), body: compose)).Data;
Check(post.Status == "scheduled" && post.Targets.Count == platforms.Length, "a post has a target for each account");
var board = JObject.FromObject(post.Variants.Single(one => one.Platform == "pinterest").Overrides)["boardId"];
Check((string)board == "918273645", "its variants keep their overrides");

var two = (await postline.ListPostTargetsAsync(postId: post.Id, platform: new[] { "x", "pinterest" })).Data;
Check(two.Count == 2 && two.All(one => one.Failure == null), "targets are listed by post and network");
foreach (var target in post.Targets)
{
    var now = new PostTargetReschedule { ScheduledAt = DateTimeOffset.UtcNow };
    var moved = (await postline.ReschedulePostTargetAsync(id: target.Id, body: now)).Data;
    Check(moved.ScheduledAt < DateTimeOffset.UtcNow.AddSeconds(1), $"the target on {moved.Platform} is moved to now");
}
var done = await Eventually("the post is published", async () =>
{
    var read = (await postline.GetPostAsync(id: post.Id)).Data;
    return read.Status == "published" ? read : null;
});
Check(
    done.Targets.All(one => one.Status == "published" && one.Permalink != null),
    "every target is published, with its permalink");

var today = new DateTimeOffset(DateTime.UtcNow.Date, TimeSpan.Zero);
var overview = (await postline.GetAnalyticsOverviewAsync(from: today, to: today, clientId: client.Id)).Data;
Check(overview.Totals != null, "the overview has figures");
var account = accounts[0].Id;
var figures = (await postline.GetAccountAnalyticsAsync(id: account, from: today, to: today)).Data;
Check(figures.SocialAccountId == account, "and so has an account");

var told = await Eventually("post.published arrives", async () =>
{
    var texts = JsonConvert.DeserializeObject<List<string>>(await plain.GetStringAsync(receiver));
    return texts
        .Where(text => (string)JObject.Parse(text)["type"] == "post.published")
        .Select(text => JsonConvert.DeserializeObject<PostPublishedEvent>(text))
        .FirstOrDefault(one => one.Data.PostId == post.Id);
});
Check(told.Data.Counts.Published == platforms.Length, "the webhook received post.published");
await Eventually("its delivery is recorded", async () =>
{
    var rows = (await postline.ListWebhookDeliveriesAsync(id: webhook.Id, eventType: "post.published")).Data;
    return rows.FirstOrDefault(one => one.EventId == told.Id && one.Status == "delivered");
});
Check(true, "and the delivery is recorded");

var late = new PostCreate
{
    ClientId = client.Id,
    Targets = group,
    Schedule = new ScheduleInput { Type = "at", ScheduledAt = DateTimeOffset.Parse("2020-01-01T00:00:00Z") },
};
var refused = await ProblemOf(() => postline.CreatePostAsync(idempotency_Key: Key(), body: late));
Check(refused.Code == "schedule_in_past" && refused.Status == 422, "a refusal has a code to branch on");

await postline.DeleteWebhookAsync(id: webhook.Id);
var gone = await ProblemOf(() => postline.GetWebhookAsync(id: webhook.Id));
Check(gone.Code == "not_found", "the webhook is deleted");
Console.WriteLine("the tour is over");

/// <summary>Remembers whether the last answer was a replay: NSwag shows bodies alone.</summary>
internal sealed class Replays : DelegatingHandler
{
    public Replays() : base(new HttpClientHandler()) { }

    public string Last { get; private set; }

    protected override async Task<HttpResponseMessage> SendAsync(HttpRequestMessage request, CancellationToken token)
    {
        var answer = await base.SendAsync(request, token);
        Last = answer.Headers.TryGetValues("Idempotent-Replayed", out var values) ? values.First() : null;
        return answer;
    }
}
