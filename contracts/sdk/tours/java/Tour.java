import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;
import java.util.stream.Collectors;
import postline.ApiClient;
import postline.ApiException;
import postline.api.*;
import postline.model.*;

/**
 * The main job through a client by openapi-generator's `java` (library native): a webhook, a client, four accounts, a
 * photo, a post with its targets, figures, events, and an error.
 */
public final class Tour {
  private static final ObjectMapper json = ApiClient.createDefaultObjectMapper();
  private static final HttpClient http = HttpClient.newHttpClient();

  private interface Call<Value> {
    Value make() throws Exception;
  }

  private static void check(boolean holds, String what) {
    if (!holds) throw new IllegalStateException("not so: " + what);
    System.out.println("ok  " + what);
  }

  private static <Value> Value eventually(String what, Call<Value> look) throws Exception {
    Instant until = Instant.now().plusSeconds(60);
    while (Instant.now().isBefore(until)) {
      Value value = look.make();
      if (value != null) return value;
      java.lang.Thread.sleep(150);
    }
    throw new IllegalStateException("not within a minute: " + what);
  }

  /** What the server refused a call with. */
  private static Problem problemOf(Call<?> call) throws Exception {
    try {
      call.make();
    } catch (ApiException refusal) {
      return json.readValue(refusal.getResponseBody(), Problem.class);
    }
    throw new IllegalStateException("the server did not refuse");
  }

  /** Every POST that creates something takes a key: a repeat with the same key creates nothing. */
  private static String key() {
    return UUID.randomUUID().toString();
  }

  private static OffsetDateTime now() {
    return OffsetDateTime.now(ZoneOffset.UTC);
  }

  private static int connect(String inviteUrl, String platform) throws Exception {
    Map<String, String> form = Map.of("platform", platform, "username", "northwind", "timezone", "");
    String body =
        form.entrySet().stream()
            .map(one -> one.getKey() + "=" + URLEncoder.encode(one.getValue(), StandardCharsets.UTF_8))
            .collect(Collectors.joining("&"));
    HttpRequest request =
        HttpRequest.newBuilder(URI.create(inviteUrl))
            .header("Content-Type", "application/x-www-form-urlencoded")
            .POST(HttpRequest.BodyPublishers.ofString(body))
            .build();
    return http.send(request, HttpResponse.BodyHandlers.discarding()).statusCode();
  }

  public static void main(String[] args) throws Exception {
    ApiClient api = new ApiClient();
    api.updateBaseUri(System.getenv("POSTLINE_URL"));
    api.setRequestInterceptor(one -> one.header("Authorization", "Bearer " + System.getenv("POSTLINE_KEY")));
    ClientsApi clients = new ClientsApi(api);
    AccountsApi accounts = new AccountsApi(api);
    MediaApi media = new MediaApi(api);
    PostsApi posts = new PostsApi(api);
    PostTargetsApi targets = new PostTargetsApi(api);
    AnalyticsApi analytics = new AnalyticsApi(api);
    WebhooksApi webhooks = new WebhooksApi(api);
    String receiver = System.getenv("POSTLINE_RECEIVER");
    List<String> platforms = List.of("x", "bluesky", "instagram", "pinterest");

    Webhook webhook =
        webhooks
            .registerWebhook(
                WebhooksApi.APIRegisterWebhookRequest.newBuilder()
                    .idempotencyKey(key())
                    .webhookCreate(
                        new WebhookCreate().url(receiver).events(List.of("post.published", "target.published")))
                    .build())
            .getData();
    check(webhook.getSecret() != null, "a webhook shows its secret once");

    String once = key();
    ClientsApi.APICreateClientRequest creation =
        ClientsApi.APICreateClientRequest.newBuilder()
            .idempotencyKey(once)
            .clientCreate(
                new ClientCreate()
                    .name("Northwind " + once.substring(0, 8))
                    .type("brand")
                    .timezone("Europe/Berlin"))
            .build();
    Client client = clients.createClient(creation).getData();
    check(client.getName().startsWith("Northwind "), "a client is created");
    var again = clients.createClientWithHttpInfo(creation);
    check(again.getData().getData().getId().equals(client.getId()), "the same key answers the same client");
    check(List.of("true").equals(again.getHeaders().get("idempotent-replayed")), "and says that it is a replay");

    ConnectInvite invite =
        clients
            .createConnectInvite(
                ClientsApi.APICreateConnectInviteRequest.newBuilder()
                    .id(client.getId())
                    .idempotencyKey(key())
                    .connectInviteCreate(new ConnectInviteCreate().platforms(platforms).expiresInHours(1))
                    .build())
            .getData();
    // What the invite page sends when a brand connects its account.
    for (String platform : platforms)
      check(connect(invite.getUrl(), platform) == 303, "the invite page connects " + platform);

    List<Account> connected =
        eventually(
            "four accounts on two pages",
            () -> {
              List<Account> found = new ArrayList<>();
              String cursor = null;
              do {
                AccountList page =
                    accounts.listAccounts(
                        AccountsApi.APIListAccountsRequest.newBuilder()
                            .clientId(client.getId())
                            .limit(2)
                            .cursor(cursor)
                            .build());
                found.addAll(page.getData());
                cursor = page.getPage().getNextCursor();
              } while (cursor != null);
              return found.size() == platforms.size() ? found : null;
            });
    check(
        connected.stream().map(Account::getId).distinct().count() == platforms.size(),
        "a cursor leads through all accounts");

    Path photo = Path.of(System.getenv("POSTLINE_PHOTO"));
    var size = new MediaPresign().fileName("coffee.jpg").contentType("image/jpeg").clientId(client.getId());
    size = json.readerForUpdating(size).readValue("{\"bytes\":" + photo.toFile().length() + "}");
    MediaUpload upload =
        media
            .presignMedia(
                MediaApi.APIPresignMediaRequest.newBuilder().mediaPresign(size).idempotencyKey(key()).build())
            .getData();
    HttpRequest.Builder put = HttpRequest.newBuilder(URI.create(upload.getUrl()));
    upload.getHeaders().entrySet().stream()
        .filter(one -> !one.getKey().equalsIgnoreCase("content-length"))
        .forEach(one -> put.header(one.getKey(), one.getValue()));
    int stored =
        http.send(put.PUT(HttpRequest.BodyPublishers.ofFile(photo)).build(), HttpResponse.BodyHandlers.discarding())
            .statusCode();
    check(stored < 300, "the presigned URL takes the file");
    media.registerMedia(
        MediaApi.APIRegisterMediaRequest.newBuilder()
            .idempotencyKey(key())
            .mediaRegister(
                new MediaRegister().assetId(upload.getAssetId()).clientId(client.getId()).altText("An espresso"))
            .build());
    eventually(
        "the photo is publishable",
        () -> {
          Media asset =
              media.getMedia(MediaApi.APIGetMediaRequest.newBuilder().id(upload.getAssetId()).build()).getData();
          return asset.getPublishable() ? asset : null;
        });

    URI link = URI.create("https://northwind.example/winter");
    TargetSelectionInput group =
        new TargetSelectionInput().mode("group").clientId(client.getId());
    NetworkOverrides pin = new NetworkOverrides().boardId("918273645").title("Winter menu").link(link);
    PostCreate compose =
        new PostCreate()
            .clientId(client.getId())
            .content("Winter menu is here.")
            .targets(group)
            .mediaIds(List.of(upload.getAssetId()))
            .mediaAltTexts(Map.of(upload.getAssetId().toString(), "An espresso with a spoon"))
            .variants(
                List.of(
                    new VariantInput().platform("x").contentOverride("Winter menu: " + link),
                    new VariantInput().platform("bluesky").overrides(new NetworkOverrides().link(link)),
                    new VariantInput().platform("pinterest").overrides(pin)))
            .schedule(new ScheduleInput().type("at").scheduledAt(now().plusHours(1)));
    Post post =
        posts
            .createPost(
                PostsApi.APICreatePostRequest.newBuilder().idempotencyKey(key()).postCreate(compose).build())
            .getData();
    check(
        post.getStatus().equals("scheduled") && post.getTargets().size() == platforms.size(),
        "a post has a target for each account");
    Variant kept =
        post.getVariants().stream().filter(one -> one.getPlatform().equals("pinterest")).findFirst().orElseThrow();
    check("918273645".equals(kept.getOverrides().get("boardId")), "its variants keep their overrides");

    List<PostTarget> two =
        targets
            .listPostTargets(
                PostTargetsApi.APIListPostTargetsRequest.newBuilder()
                    .postId(post.getId())
                    .platform(List.of("x", "pinterest"))
                    .build())
            .getData();
    check(
        two.size() == 2 && two.stream().allMatch(one -> one.getFailure() == null),
        "targets are listed by post and network");
    for (PostTarget target : post.getTargets()) {
      PostTarget moved =
          targets
              .reschedulePostTarget(
                  PostTargetsApi.APIReschedulePostTargetRequest.newBuilder()
                      .id(target.getId())
                      .postTargetReschedule(new PostTargetReschedule().scheduledAt(now()))
                      .build())
              .getData();
      Duration ahead = Duration.between(now(), moved.getScheduledAt());
      check(ahead.toSeconds() < 1, "the target on " + moved.getPlatform() + " is moved to now");
    }
    Post done =
        eventually(
            "the post is published",
            () -> {
              Post read = posts.getPost(PostsApi.APIGetPostRequest.newBuilder().id(post.getId()).build()).getData();
              return read.getStatus().equals("published") ? read : null;
            });
    check(
        done.getTargets().stream()
            .allMatch(one -> one.getStatus().equals("published") && one.getPermalink() != null),
        "every target is published, with its permalink");

    LocalDate today = LocalDate.now(ZoneOffset.UTC);
    WorkspaceAnalytics overview =
        analytics
            .getAnalyticsOverview(
                AnalyticsApi.APIGetAnalyticsOverviewRequest.newBuilder()
                    .from(today)
                    .to(today)
                    .clientId(client.getId())
                    .build())
            .getData();
    check(overview.getTotals() != null, "the overview has figures");
    UUID account = connected.get(0).getId();
    AccountAnalytics figures =
        analytics
            .getAccountAnalytics(
                AnalyticsApi.APIGetAccountAnalyticsRequest.newBuilder().id(account).from(today).to(today).build())
            .getData();
    check(figures.getSocialAccountId().equals(account), "and so has an account");

    PostPublishedEvent event =
        eventually(
            "post.published arrives",
            () -> {
              HttpRequest request = HttpRequest.newBuilder(URI.create(receiver)).build();
              String body = http.send(request, HttpResponse.BodyHandlers.ofString()).body();
              for (JsonNode text : json.readTree(body)) {
                if (!json.readTree(text.asText()).path("type").asText().equals("post.published")) continue;
                PostPublishedEvent told = json.readValue(text.asText(), PostPublishedEvent.class);
                if (told.getData().getPostId().equals(post.getId())) return told;
              }
              return null;
            });
    check(
        event.getData().getCounts().getPublished() == platforms.size(), "the webhook received post.published");
    eventually(
        "its delivery is recorded",
        () -> {
          List<WebhookDelivery> rows =
              webhooks
                  .listWebhookDeliveries(
                      WebhooksApi.APIListWebhookDeliveriesRequest.newBuilder()
                          .id(webhook.getId())
                          .eventType("post.published")
                          .build())
                  .getData();
          return rows.stream().anyMatch(one -> Objects.equals(one.getEventId(), event.getId())
                  && one.getStatus().equals("delivered"))
              ? rows
              : null;
        });
    check(true, "and the delivery is recorded");

    OffsetDateTime past = OffsetDateTime.parse("2020-01-01T00:00:00Z");
    PostCreate late =
        new PostCreate()
            .clientId(client.getId())
            .targets(group)
            .schedule(new ScheduleInput().type("at").scheduledAt(past));
    Problem refused =
        problemOf(
            () ->
                posts.createPost(
                    PostsApi.APICreatePostRequest.newBuilder().idempotencyKey(key()).postCreate(late).build()));
    check(
        refused.getCode().equals("schedule_in_past") && refused.getStatus() == 422,
        "a refusal has a code to branch on");

    webhooks.deleteWebhook(WebhooksApi.APIDeleteWebhookRequest.newBuilder().id(webhook.getId()).build());
    Problem gone =
        problemOf(
            () -> webhooks.getWebhook(WebhooksApi.APIGetWebhookRequest.newBuilder().id(webhook.getId()).build()));
    check(gone.getCode().equals("not_found"), "the webhook is deleted");
    System.out.println("the tour is over");
  }
}
