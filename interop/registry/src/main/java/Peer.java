import java.util.List;
import java.util.concurrent.CountDownLatch;
import javax.xml.ws.Endpoint;
import org.apache.cxf.jaxws.JaxWsProxyFactoryBean;
import org.uddi.api_v3.AccessPoint;
import org.uddi.api_v3.AuthToken;
import org.uddi.api_v3.BindingTemplate;
import org.uddi.api_v3.BindingTemplates;
import org.uddi.api_v3.BusinessDetail;
import org.uddi.api_v3.BusinessEntity;
import org.uddi.api_v3.BusinessService;
import org.uddi.api_v3.BusinessServices;
import org.uddi.api_v3.CategoryBag;
import org.uddi.api_v3.DeleteBusiness;
import org.uddi.api_v3.DiscardAuthToken;
import org.uddi.api_v3.FindService;
import org.uddi.api_v3.GetAuthToken;
import org.uddi.api_v3.GetServiceDetail;
import org.uddi.api_v3.KeyedReference;
import org.uddi.api_v3.Name;
import org.uddi.api_v3.Result;
import org.uddi.api_v3.SaveBusiness;
import org.uddi.api_v3.ServiceDetail;
import org.uddi.api_v3.ServiceList;
import org.uddi.v3_service.DispositionReportFaultMessage;
import org.uddi.v3_service.UDDIInquiryPortType;
import org.uddi.v3_service.UDDIPublicationPortType;
import org.uddi.v3_service.UDDISecurityPortType;

/** jUDDI as a registry (`serve PORT`), and its client library (`call URL USER PASSWORD`). */
public final class Peer {
    public static void main(String[] args) throws Exception {
        if (args[0].equals("serve")) {
            serve(args[1]);
        } else {
            call(args[1], args[2], args[3]);
        }
    }

    private static void serve(String port) throws Exception {
        org.apache.juddi.Registry.start();
        String base = "http://127.0.0.1:" + port + "/";
        Endpoint.publish(base + "security", new org.apache.juddi.api.impl.UDDISecurityImpl());
        Endpoint.publish(base + "inquiry", new org.apache.juddi.api.impl.UDDIInquiryImpl());
        Endpoint.publish(base + "publish", new org.apache.juddi.api.impl.UDDIPublicationImpl());
        System.out.println("ready");
        System.out.flush();
        new CountDownLatch(1).await();
    }

    /** A port of the library, without its WSDL, which imports schemas that only the Internet has. */
    private static <T> T at(Class<T> port, String url) {
        JaxWsProxyFactoryBean factory = new JaxWsProxyFactoryBean();
        factory.setServiceClass(port);
        factory.setAddress(url);
        return factory.create(port);
    }

    /** What the library reads of a fault, of which class ever the runtime makes it. */
    private static Result report(Exception fault) {
        return DispositionReportFaultMessage.getDispositionReport(fault).getResult().get(0);
    }

    private static void say(String name, Object value) {
        System.out.println(name + "=" + value);
    }

    private static KeyedReference reference(String tModel, String value) {
        KeyedReference reference = new KeyedReference();
        reference.setTModelKey(tModel);
        reference.setKeyValue(value);
        return reference;
    }

    private static BusinessEntity business() {
        AccessPoint point = new AccessPoint();
        point.setUseType("endPoint");
        point.setValue("http://192.0.2.1/java");
        BindingTemplate binding = new BindingTemplate();
        binding.setAccessPoint(point);
        BindingTemplates bindings = new BindingTemplates();
        bindings.getBindingTemplate().add(binding);
        CategoryBag bag = new CategoryBag();
        bag.getKeyedReference().add(reference("uddi:longwire.example:kind", "java"));
        bag.getKeyedReference().add(reference("uddi:longwire.example:qos-latency", "le-3000"));
        BusinessService service = new BusinessService();
        service.getName().add(new Name("service of Java", "en"));
        service.setBindingTemplates(bindings);
        service.setCategoryBag(bag);
        BusinessServices services = new BusinessServices();
        services.getBusinessService().add(service);
        BusinessEntity business = new BusinessEntity();
        business.getName().add(new Name("business of Java", "en"));
        business.setBusinessServices(services);
        return business;
    }

    private static void call(String base, String user, String password) throws Exception {
        UDDISecurityPortType security = at(UDDISecurityPortType.class, base + "security");
        UDDIInquiryPortType inquiry = at(UDDIInquiryPortType.class, base + "inquiry");
        UDDIPublicationPortType publish = at(UDDIPublicationPortType.class, base + "publish");
        GetAuthToken login = new GetAuthToken();
        login.setUserID(user);
        login.setCred(password);
        AuthToken token = security.getAuthToken(login);
        say("token", !token.getAuthInfo().isEmpty());
        SaveBusiness save = new SaveBusiness();
        save.setAuthInfo(token.getAuthInfo());
        save.getBusinessEntity().add(business());
        BusinessDetail saved = publish.saveBusiness(save);
        BusinessEntity entity = saved.getBusinessEntity().get(0);
        say("saved", entity.getBusinessServices().getBusinessService().size());
        FindService find = new FindService();
        CategoryBag bag = new CategoryBag();
        bag.getKeyedReference().add(reference("uddi:longwire.example:kind", "java"));
        find.setCategoryBag(bag);
        ServiceList list = inquiry.findService(find);
        say("found", list.getServiceInfos().getServiceInfo().size());
        GetServiceDetail get = new GetServiceDetail();
        get.getServiceKey().add(list.getServiceInfos().getServiceInfo().get(0).getServiceKey());
        ServiceDetail detail = inquiry.getServiceDetail(get);
        List<BindingTemplate> bindings =
            detail.getBusinessService().get(0).getBindingTemplates().getBindingTemplate();
        say("address", bindings.get(0).getAccessPoint().getValue());
        DeleteBusiness delete = new DeleteBusiness();
        delete.setAuthInfo(token.getAuthInfo());
        delete.getBusinessKey().add(entity.getBusinessKey());
        publish.deleteBusiness(delete);
        try {
            inquiry.getServiceDetail(get);
            say("gone", "no fault");
        } catch (Exception fault) {
            say("gone", report(fault).getErrno());
        }
        DiscardAuthToken discard = new DiscardAuthToken();
        discard.setAuthInfo(token.getAuthInfo());
        security.discardAuthToken(discard);
        try {
            publish.saveBusiness(save);
            say("discarded", "no fault");
        } catch (Exception fault) {
            say("discarded", report(fault).getErrInfo().getErrCode());
        }
    }
}
