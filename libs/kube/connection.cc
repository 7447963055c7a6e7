#include "libs/kube/connection.h"

#include "libs/base/version.h"

namespace kube {

using base::Milliseconds;

namespace {

std::string host_of(const std::string& server) {
  const std::size_t start = server.find("://") + 3;
  return server.substr(start, server.find('/', start) - start);
}

}  // namespace

Connection::Connection(Config config, const base::Clock& clock, ConnectionSettings settings)
    : config_(std::move(config)),
      clock_(clock),
      settings_(std::move(settings)),
      host_(host_of(config_.cluster.server)),
      credentials_(config_.cluster, config_.user, clock) {
  if (!config_.cluster.authority.file.empty())
    authority_file_.emplace(config_.cluster.authority.file);
}

base::Result<std::shared_ptr<net::Transport>> Connection::transport_for(const Proof& proof) {
  std::lock_guard lock(mutex_);
  const std::string authorization = proof.headers.find("Authorization").value_or("");
  shown_ = authorization.substr(authorization.find(' ') + 1);  // Without "Bearer".
  net::ConnectionOptions wanted{.user_agent = "sandfleet/" + std::string(base::kVersion)};
  wanted.ca_bundle = config_.cluster.authority.text;
  if (authority_file_) {
    TRY(wanted.ca_bundle, authority_file_->text(clock_.now()));
  }
  wanted.client_certificate = proof.certificate;
  wanted.client_key = proof.key;
  wanted.verify_server = !config_.cluster.insecure;
  wanted.tls_server_name = config_.cluster.tls_server_name;
  if (!config_.cluster.proxy_url.empty()) wanted.proxy = config_.cluster.proxy_url;
  // Requests under way keep the transport that they began with.
  if (!transport_ || wanted != options_) {
    transport_ = settings_.transport(wanted);
    options_ = std::move(wanted);
  }
  return transport_;
}

net::Reply Connection::attempt(net::Request request, const Proof& proof, const Ask& ask) {
  for (const net::Header& header : proof.headers.all())
    request.headers.add(header.name, header.value);
  auto transport = transport_for(proof);
  if (!transport) return net::Failure{transport.error(), false};
  return ask(**transport, request);
}

void Connection::report(const net::Request& request, const net::Reply& reply,
                        std::optional<Milliseconds> took) const {
  if (settings_.on_call)
    settings_.on_call({.code = reply ? std::to_string(reply->status) : "<error>",
                       .method = request.method,
                       .host = host_,
                       .path = request.url.substr(config_.cluster.server.size()),
                       .took = took});
}

net::Reply Connection::carry(net::Request request, std::stop_token stop, const Ask& ask) {
  request.url = config_.cluster.server + request.url;
  const auto proof = credentials_.proof(stop);
  if (!proof) return net::Failure{proof.error(), false};
  net::Reply reply = attempt(request, *proof, ask);
  if (!reply || reply->status != 401) return reply;
  credentials_.refused(*proof);
  const auto newer = credentials_.proof(stop);
  if (!newer || *newer == *proof) return reply;
  return attempt(std::move(request), *newer, ask);
}

net::Reply Connection::send(net::Request request, Milliseconds timeout, std::stop_token stop) {
  return carry(std::move(request), stop, [&](net::Transport& transport, const net::Request& whole) {
    const base::Moment before = clock_.now();
    net::Reply reply = transport.send(whole, timeout, stop);
    report(whole, reply, clock_.now() - before);
    return reply;
  });
}

net::Reply Connection::stream(net::Request request, const net::Sink& sink,
                              Milliseconds idle_timeout, std::stop_token stop) {
  // A 401 is kept from the sink while there may be newer credentials to try.
  const net::Sink unless_refused{[&](const net::Response& head) {
                                   if (head.status == 401) return false;
                                   return !sink.head || sink.head(head);
                                 },
                                 sink.bytes};
  net::Reply reply =
      carry(std::move(request), stop, [&](net::Transport& transport, const net::Request& whole) {
        net::Reply reply = transport.stream(whole, unless_refused, idle_timeout, stop);
        report(whole, reply, std::nullopt);
        return reply;
      });
  if (reply && reply->status == 401 && sink.head) sink.head(*reply);
  return reply;
}

std::string Connection::tame(std::string_view text) const {
  std::lock_guard lock(mutex_);
  return net::tame(text, shown_);
}

}  // namespace kube
